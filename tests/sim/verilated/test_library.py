# SPDX-License-Identifier: Apache-2.0
import json
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import hdl.bundle
from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.devices import simulated
from host.devices.simulated import LIBRARY, SimulatedDevice, processor_of, this_processor
from host.errors import BuildError, FailureError, ManifestError, MissingToolError
from host.files.atomic import checksum_file, is_intact, publish
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest, digest
from sim.__main__ import main
from sim.rewriter import UnknownNetlist
from sim.verilated import library, model
from sim.verilated.library import build_library, cached, cached_runtime, locked
from sim.verilated.toolchain import find_toolchain, run_all

# The smallest accelerator, with words of more than 64 bits on the way in.
SMALL = JoinParameters.of(cores=1, sub_window=2, keys=(KeyField(name="x", bits=64),))

BUILD = "from sim.verilated.library import build_library; import sys; build_library(sys.argv[1])"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A bundle with its library, in a cache of its own with Verilator's part of the common one."""
    folder = tmp_path_factory.mktemp("library")
    runtime = cached_runtime(find_toolchain(), what="tests", report=print)
    (folder / "cache" / "libraries").mkdir(parents=True)
    for path in runtime.parent.glob(f"{runtime.name}*"):
        shutil.copy(path, folder / "cache" / "libraries")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPLITJOIN_CACHE", str(folder / "cache"))
        write_bundle(SMALL, folder / "bundle")
        build_library(folder / "bundle")
        yield folder / "bundle"


@pytest.fixture
def bundle(built, tmp_path):
    """A copy of the bundle without its library."""
    shutil.copytree(built, tmp_path / "bundle")
    (tmp_path / "bundle" / LIBRARY).unlink()
    checksum_file(tmp_path / "bundle" / LIBRARY).unlink()
    return tmp_path / "bundle"


@pytest.fixture
def cache(built, tmp_path):
    """A cache without libraries, but with Verilator's own part of them."""
    folder = tmp_path / "cache"
    (folder / "libraries").mkdir(parents=True)
    for path in (built.parent / "cache" / "libraries").glob("runtime-*"):
        shutil.copy(path, folder / "libraries")
    return folder


def start(bundle, cache):
    """Start a process that builds the library of ``bundle``."""
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(bundle)],
        env={**os.environ, "SPLITJOIN_CACHE": str(cache)},
    )


def converse(bundle, **options):
    """Return the result words of a short stream."""
    with SimulatedDevice(bundle, **options) as device:
        codec = WordCodec(device.manifest)
        values = np.array([-5, -5, 7, -(2**63), -5, 7])
        words = np.concatenate(
            [
                codec.pack_control("BOUND_LOW", 0, 0),
                codec.pack_control("BOUND_HIGH", 0, 0),
                codec.pack_tuples(np.array([0, 1, 0, 1, 1, 1]), {"x": values}),
                codec.pack_control("FLUSH"),
            ]
        )
        results = np.zeros((64, device.manifest.result_word.columns), np.uint64)
        done = device.exchange(words, results, cycles=5000)
        assert done.accepted == len(words)
        return results[: done.produced].tolist()


def test_the_first_file_of_a_cache_makes_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "not" / "yet"))

    def make(place, log):
        made = place / "made"
        made.write_bytes(b"as if it were a library")
        return made

    entry = cached("a-file.so", make, report=print)
    assert entry.parent == tmp_path / "not" / "yet" / "libraries"
    assert cached("a-file.so", None, report=print).read_bytes() == b"as if it were a library"


@pytest.mark.long
def test_a_second_build_takes_the_library_from_the_cache(bundle):
    before = time.perf_counter()
    said = []
    library = build_library(bundle, report=said.append)
    assert time.perf_counter() - before < 5
    assert library == bundle / LIBRARY
    assert not any("building" in line for line in said)
    with SimulatedDevice(bundle) as device:
        assert device.manifest.hash == Manifest.load(bundle).hash


@pytest.mark.long
def test_words_wider_than_64_bits_arrive_whole(built):
    codec = WordCodec(Manifest.load(built))
    assert codec.manifest.input_word.columns == 2
    results = codec.unpack_results(np.array(converse(built), np.uint64))
    assert (results.kind == codec.pair).sum() == 3
    assert (results.kind == codec.star).sum() == 6


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stalls_and_the_start_values_of_memories_change_nothing(built, seed):
    assert converse(built, seed=seed, stall_in=120, stall_out=200) == converse(built)


def test_instances_in_threads_do_not_disturb_one_another(built):
    expected, answers = converse(built), []

    def work():
        for _ in range(20):
            answers.append(converse(built))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 80


@pytest.mark.parametrize("order", [1, -1])
def test_instances_of_one_library_are_closed_in_any_order(built, order):
    # In a process of its own: where it fails, it hangs in C++ without letting Python go on.
    closing = (
        "import sys; from host.devices import open_device\n"
        "devices = [open_device(sys.argv[1]) for _ in range(3)]\n"
        "for device in devices[:: int(sys.argv[2])]: device.close()"
    )
    command = [sys.executable, "-c", closing, f"sim:{built}", str(order)]
    subprocess.run(command, check=True, timeout=60, cwd=Path(__file__).parents[3])


def test_opening_and_closing_returns_the_memory(built):
    def resident():
        pages = Path("/proc/self/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    converse(built)
    before = resident()
    for _ in range(200):
        SimulatedDevice(built).close()
    assert resident() - before < 4 << 20


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Texts that would be compiled; what is made of them is an empty library."""
    texts = []

    def compile_nothing(tools, text, manifest, runtime, folder, **messages):
        texts.append(text)
        (folder / "library.so").write_bytes(b"")
        return folder / "library.so"

    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(library, "compile_model", compile_nothing)
    monkeypatch.setattr(library, "cached_runtime", lambda tools, **messages: None)
    monkeypatch.setattr(library, "compare_in_lockstep", lambda *libraries, what: None)
    return texts


def test_a_plain_library_is_made_from_the_verilog_of_the_bundle(bundle, compiled):
    assert main(["build", "--plain", str(bundle)]) == 0
    assert main(["build", str(bundle)]) == 0
    verilog = (bundle / "splitjoin.v").read_text()
    rewritten = model.simulated_text((bundle / "splitjoin.json").read_text())
    assert compiled == [verilog, rewritten, verilog]  # the last one to be run beside it


def test_a_netlist_that_cannot_be_rewritten_is_named(bundle, compiled, monkeypatch):
    def refuse(netlist):
        raise UnknownNetlist("a cell of type $div")

    monkeypatch.setattr(library, "simulated_text", refuse)
    said = []
    build_library(bundle, report=said.append)
    assert compiled == [(bundle / "splitjoin.v").read_text()]
    assert any("the netlist has a cell of type $div" in line for line in said)


def test_a_bundle_without_a_netlist_is_made_from_its_verilog(bundle, compiled):
    values = Manifest.load(bundle).values
    rest = values | {"files": {"verilog": "splitjoin.v"}, "checksums": {}}
    verilog = (bundle / "splitjoin.v").read_text()
    rest["hash"] = digest(rest, verilog)
    (bundle / "manifest.json").write_text(json.dumps(rest))
    said = []
    build_library(bundle, report=said.append)
    assert compiled == [verilog]
    assert any("the bundle has no netlist" in line for line in said)


def test_a_changed_netlist_is_refused(bundle):
    with (bundle / "splitjoin.json").open("a") as file:
        file.write(" ")
    with pytest.raises(ManifestError, match=r"splitjoin\.json.*generate it again"):
        build_library(bundle)
    (bundle / "splitjoin.json").unlink()
    with pytest.raises(ManifestError, match=r"lacks its netlist.*generate it again"):
        build_library(bundle)


def test_a_changed_bundle_refuses_its_old_library(built, tmp_path, monkeypatch):
    monkeypatch.setattr(hdl.bundle, "generate", lambda parameters: ("", "{}"))  # nobody reads it
    write_bundle(SMALL.with_(sub_window=5), tmp_path / "other")
    for path in built.glob(f"{LIBRARY}*"):
        shutil.copy(path, tmp_path / "other")
    with pytest.raises(ManifestError, match=r"built from something else.*sim build"):
        SimulatedDevice(tmp_path / "other")
    verilog = tmp_path / "other" / "splitjoin.v"
    verilog.write_text(verilog.read_text() + "\n")
    with pytest.raises(ManifestError, match="was changed after it was generated"):
        build_library(tmp_path / "other")


@pytest.mark.long
def test_a_bundle_can_be_replaced_while_its_library_is_loaded(bundle):
    build_library(bundle)
    before = converse(bundle)
    write_bundle(SMALL.with_(sub_window=1), bundle)
    build_library(bundle)
    assert len(converse(bundle)) < len(before)
    write_bundle(SMALL, bundle)
    build_library(bundle)
    assert converse(bundle) == before


@pytest.mark.long
def test_a_library_that_is_replaced_while_it_is_opened_is_refused(built, bundle, monkeypatch):
    # One that this process has not loaded yet.
    write_bundle(SMALL.with_(sub_window=5), bundle)
    build_library(bundle)
    unused_name = simulated._unused_name

    def replace(path):
        shutil.copy(built / LIBRARY, path)
        return unused_name(path)

    with monkeypatch.context() as patch:
        patch.setattr(simulated, "_unused_name", replace)
        with pytest.raises(ManifestError, match=r"built from something else.*sim build"):
            SimulatedDevice(bundle)
    build_library(bundle)
    assert converse(bundle)


def test_a_missing_library_names_the_command(bundle):
    with pytest.raises(ManifestError, match=rf"python -m sim build {bundle}"):
        SimulatedDevice(bundle)


def cut(contents):
    return contents[: len(contents) * 9 // 10]


def zeroed(contents):
    return contents[:4096] + bytes(len(contents) - 4096)


def altered(contents):
    middle = len(contents) // 2
    return contents[:middle] + bytes([contents[middle] ^ 1]) + contents[middle + 1 :]


def emptied(contents):
    return b""


@pytest.mark.parametrize("damage", [cut, zeroed, altered, emptied])
def test_a_damaged_library_is_refused_before_it_is_loaded_and_built_again(
    bundle, tmp_path, damage, capsys, monkeypatch
):
    spaced = tmp_path / "a place"
    bundle.rename(spaced)
    library = build_library(spaced)
    whole = library.read_bytes()
    library.write_bytes(damage(whole))
    with monkeypatch.context() as patch:
        patch.setattr("ctypes.CDLL", None)
        with pytest.raises(ManifestError, match=rf"damaged.*`python -m sim build '{spaced}'`"):
            SimulatedDevice(spaced)
    assert main(["build", str(spaced)]) == 0
    assert library.read_bytes() == whole
    checksum_file(library).unlink()
    with pytest.raises(ManifestError, match=r"splitjoin.so.sha256"):
        SimulatedDevice(spaced)
    assert main(["build", str(spaced)]) == 0
    assert converse(spaced)
    subprocess.run(["sha256sum", "--check", checksum_file(library)], cwd=spaced, check=True)


def test_a_damaged_entry_of_the_cache_is_built_again(built, bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    shutil.copytree(built.parent / "cache", tmp_path / "cache")
    whole = build_library(bundle).read_bytes()
    libraries = tmp_path / "cache" / "libraries"
    (entry,) = (path for path in libraries.glob("*.so") if path.read_bytes() == whole)
    (runtime,) = libraries.glob("*.o")

    def compiled(tools, *parts, **options):
        folder = parts[-1]
        (folder / "made").write_bytes(whole)
        return folder / "made"

    monkeypatch.setattr("sim.verilated.library.compile_runtime", compiled)
    monkeypatch.setattr("sim.verilated.library.compile_model", compiled)
    for path in (entry, runtime):
        path.write_bytes(zeroed(path.read_bytes()))
    (bundle / LIBRARY).unlink()
    said = []
    build_library(bundle, report=said.append)
    for path in (entry, runtime):
        assert is_intact(path)
        assert any(f"{path} is damaged" in line for line in said)
    assert converse(bundle) == converse(built)


def test_a_library_for_another_processor_says_which(built, bundle):
    library = build_library(bundle)
    contents = bytearray(library.read_bytes())
    contents[18:20] = (183).to_bytes(2, "little")
    (bundle.parent / "foreign").write_bytes(contents)
    publish(bundle.parent / "foreign", library)
    here = this_processor()
    with pytest.raises(
        ManifestError,
        match=rf"it is for AArch64 \(64 bits, little-endian\), .* is {re.escape(here)}; build it",
    ):
        SimulatedDevice(bundle)
    build_library(bundle)
    assert converse(bundle) == converse(built)


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"\x7fELF\x02\x01" + bytes(12) + b"\xf3\0", "RISC-V (64 bits, little-endian)"),
        (b"\x7fELF\x01\x02" + bytes(12) + b"\0\x15", "POWER (32 bits, big-endian)"),
        (b"\x7fELF\x01\x01" + bytes(12) + b"\xff\0", "processor 255 (32 bits, little-endian)"),
        (b"\xcf\xfa\xed\xfe" + bytes(28), None),
        (b"\x7fELF", None),
    ],
)
def test_the_header_of_a_library_names_its_processor(header, name):
    assert processor_of(header) == name
    assert processor_of(Path(sys.executable).read_bytes()) == this_processor() is not None


def test_places_that_cannot_be_written_are_noticed_before_the_build(
    bundle, tmp_path, monkeypatch, capsys
):
    (tmp_path / "file").touch()
    with monkeypatch.context() as patch:
        patch.setenv("SPLITJOIN_CACHE", str(tmp_path / "file"))
        patch.setattr("hdl.bundle.write_bundle", None)
        assert main(["build", "--preset", "tiny", "--output", str(tmp_path / "new")]) == 1
        assert "set SPLITJOIN_CACHE to a folder that can be" in capsys.readouterr().err
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sim.verilated.library.compile_runtime", None)

    def read_only(folder):
        if folder == bundle:
            raise FailureError("Read-only file system")
        folder.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr("sim.verilated.library.prepare_folder", read_only)
    with pytest.raises(FailureError, match="Read-only"):
        build_library(bundle)


@pytest.mark.long
def test_two_processes_build_once(bundle, cache, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    processes = [start(bundle, cache), start(copy, cache)]
    assert [process.wait() for process in processes] == [0, 0]
    libraries = cache / "libraries"
    assert len(list(libraries.glob("*.so"))) == 1
    assert not list(libraries.glob(".*"))
    assert converse(bundle) == converse(copy)


def test_a_build_does_not_wait_for_another_one_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.verilated.library.WAIT_SECONDS", 0.3)
    with locked(tmp_path / "lock", print):
        with pytest.raises(BuildError, match=rf"holds '{tmp_path / 'lock'}'"):
            with locked(tmp_path / "lock", print):
                pass


@pytest.mark.long
def test_a_killed_build_leaves_nothing_half_done(bundle, cache):
    process = start(bundle, cache)
    while not list(cache.glob("libraries/.*/work/*.cpp")):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (bundle / LIBRARY).exists()
    assert not list(cache.glob("libraries/*.so"))
    assert start(bundle, cache).wait() == 0
    assert not list(cache.glob("libraries/.*"))
    assert converse(bundle)


def test_a_missing_compiler_is_named(bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MissingToolError, match=r"g\+\+ is needed .*apt install g\+\+"):
        build_library(bundle)


def test_a_missing_verilator_is_named(bundle, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("hdl.verilog.lint.find_spec", lambda name: None)
    with pytest.raises(MissingToolError, match=r"verilator is needed .*make setup"):
        build_library(bundle)


def test_a_failing_compiler_shows_what_it_said(bundle, tmp_path, monkeypatch):
    compiler = tmp_path / "my-compiler"
    compiler.write_text("#!/bin/sh\n[ $1 = --version ] && exit\necho 'disk on fire' >&2\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    with pytest.raises(
        BuildError, match=r"ended with code 3; log file: (.*)\ndisk on fire"
    ) as caught:
        build_library(bundle)
    (log,) = (tmp_path / "cache" / "libraries").glob("*.log")
    assert "disk on fire" in log.read_text()
    assert str(log) in str(caught.value)
    assert not list((tmp_path / "cache" / "libraries").glob(".*"))


def test_a_failure_is_told_where_even_its_log_does_not_fit(tmp_path):
    with pytest.raises(BuildError) as caught:
        run_all(
            [["false"], ["sh", "-c", "kill -9 $$"]], what="x", log=tmp_path / "none" / "log",
            environment=None, folder=tmp_path, beat=lambda done: None,
        )  # fmt: skip
    assert str(caught.value) == (
        "Building x failed: false ended with code 1; its log file could not be written: "
        "No such file or directory\nIt said nothing."
    )


def test_a_failure_stops_the_commands_beside_it(tmp_path):
    started = time.perf_counter()
    with pytest.raises(BuildError, match="false ended with code 1"):
        run_all(
            [["sleep", "60"], ["false"]], what="x", log=tmp_path / "log", environment=None,
            folder=tmp_path, beat=lambda done: None, count=2,
        )  # fmt: skip
    assert time.perf_counter() - started < 10


def test_the_toolchain_tells_its_versions():
    verilator, compiler = find_toolchain().versions()
    assert "rev" in verilator
    assert compiler
