# SPDX-License-Identifier: Apache-2.0
from hdl.fpga import provenance
from hdl.fpga.provenance import identify, release_of
from hdl.fpga.tools import NEXTPNR


def test_a_program_is_the_locked_package_or_what_a_variable_names(tmp_path, monkeypatch):
    lock = tmp_path / "lock"
    monkeypatch.setattr(provenance, "LOCK", lock)
    monkeypatch.setattr(provenance, "package_version", lambda name: "0.11.1.0.post2")
    for line, locked in ((f"{NEXTPNR}==0.11.1.0.post2 \\\n", True), ("other==1\n", False)):
        lock.write_text(line)
        found = identify(NEXTPNR)
        assert (found.locked, found.release) == (locked, "0.11.1")
        assert found.source.startswith("make setup-fpga" if locked else "pip install yowasp")

    native = tmp_path / "nextpnr-native"
    native.write_text("#!/bin/sh\necho '\"x\" -- Place and Route (Version nextpnr-0.11.1)' >&2\n")
    native.chmod(0o755)
    monkeypatch.setenv("NEXTPNR_ECP5", str(native))
    found = identify(NEXTPNR)
    assert (found.name, found.version, found.release, found.locked) == (
        "nextpnr-native", "nextpnr-0.11.1", "0.11.1", False,
    )  # fmt: skip
    assert release_of("nextpnr-0.11.1-7-gabcdef0") == "0.11.1-7-gabcdef0"
