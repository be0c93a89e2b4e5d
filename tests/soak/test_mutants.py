# SPDX-License-Identifier: Apache-2.0
"""The soak finds one wrong operator anywhere in the Verilog of an accelerator, within seconds."""

import itertools
import json
import re
import time

import pytest

from formal.mutation import mutants_of
from hdl.bundle import write_bundle
from hdl.ingress.punctuation import GroupSchedule
from hdl.manifest import fingerprint
from sim.failures.bundles import built, manifest_of
from sim.verilated.library import build_library
from tests.conftest import ROOT
from tests.host.devices.test_device_external import LARGE
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.small_bundles import BUNDLES
from tests.soak.checking import Checker
from tests.soak.runs import Soak
from tests.soak.shapes import KINDS, random_shape
from tests.soak.test_runs import CHAINS, LARGE_EFFORT

SCAN = BUNDLES["tiny"]
INDEX = PARAMETERS["index, two in a word"]
HANDSHAKE, LOW_LATENCY = CHAINS.values()
#: Module, and what its first assignment with an operator has in the place of that.
MUTANTS = [
    (SCAN, "comparator", "&", "|"),
    (SCAN, "time_expiry", "+", "-"),
    (SCAN, "time_order", "-", "+"),
    (SCAN, "group_schedule", "|", "&"),
    (SCAN, "core_lists", "==", "!="),
    (SCAN, "side_turns", "-", "+"),
    (SCAN, "storage_turns", "&", "|"),
    (SCAN, "span_mask", "==", "!="),
    (SCAN, "moving_span", "+", "-"),
    (SCAN, "ingress", "|", "&"),
    (SCAN, "merger", "&", "|"),
    (INDEX, "chain_walker", "&", "|"),
    (INDEX, "cell_counter", "+", "-"),
    (HANDSHAKE, "flow_window", "-", "+"),
    (HANDSHAKE, "handshake_core_2", ">", "<"),
    (HANDSHAKE, "outlet", "&", "|"),
    (HANDSHAKE, "pass_rows", "-", "+"),
    (HANDSHAKE, "side_window", "==", "!="),
    (LOW_LATENCY, "in_flight", "+", "-"),
    (LOW_LATENCY, "home_window", "-", "+"),
    (LOW_LATENCY, "expedited_core_2", "|", "&"),
    (LOW_LATENCY, "segment_2", "-", "+"),
    (LOW_LATENCY, "coordinator", "-", "+"),
    (LOW_LATENCY, "free_merger", "&", "|"),
    (LARGE, "pass_splitter", "+", "-"),
    (LARGE, "row_selector", "&", "|"),
    (LARGE, "read_master", "-", "+"),
    (LARGE, "write_batcher", "!=", "=="),
    (LARGE, "row_store", "-", "+"),
    (LARGE, "row_queue", "-", "+"),
]
SECONDS, PROGRAMS, EFFORT = 20, 400, 20_000
#: Number of the first shape of many cores.
CROWD = KINDS.index(("crowd", "equality"))


def changed(verilog, module, old, new):
    """Return Verilog in which the first ``old`` of an assignment in a module is ``new``.

    Parameters
    ----------
    verilog : str
    module : str
        Its name.
    old, new : str
        Operators, as ``"&"``.

    Raises
    ------
    ValueError
        If the module has no such assignment.
    """
    begin = verilog.index(f"module {module}(")
    end = verilog.index("endmodule", begin)
    found = re.search(rf"^(  assign .* ){re.escape(old)} ", verilog[begin:end], flags=re.MULTILINE)
    if not found:
        raise ValueError(f"Module {module!r} has no assignment with operator {old!r}")
    at = begin + found.end(1)
    return f"{verilog[:at]}{new}{verilog[at + len(old) :]}"


def write_mutant(bundle, folder, module, old, new):
    """Write a copy of a bundle with one operator changed, as :func:`changed` does it.

    It has no netlist, so its library is made from the Verilog.
    """
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    source = manifest["files"]["verilog"]
    verilog = changed((bundle / source).read_text(encoding="utf-8"), module, old, new)
    manifest["files"] = {"verilog": source}
    manifest["checksums"] = {}
    manifest["hash"] = fingerprint(manifest, verilog)
    folder.mkdir(parents=True)
    (folder / source).write_text(verilog, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("parameters", "module", "old", "new"), MUTANTS, ids=[mutant[1] for mutant in MUTANTS]
)
def test_mutant_is_found(parameters, module, old, new, tmp_path, monkeypatch):
    bundle = built(parameters, lambda text: None, folder=ROOT / "build" / "tests")
    mutant = write_mutant(bundle, tmp_path / "mutant", module, old, new)
    build_library(mutant, plain=True)
    manifest = manifest_of(mutant)
    checker = Checker(mutant / "splitjoin.so", manifest)
    run = Soak(7, print, effort=LARGE_EFFORT if parameters.engine.has_memory else EFFORT)
    monkeypatch.setattr(run, "tell", lambda *arguments: None)
    began = time.process_time()
    found = next((n for n in range(PROGRAMS) if run.case(0, n, manifest, checker)), None)
    seconds = time.process_time() - began
    print(f"{module}: {old} -> {new}: program {found}, {seconds:.1f} s")
    assert found is not None
    assert seconds < SECONDS


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_group_that_misses_a_limit_of_two_is_found(tmp_path, monkeypatch):
    """The group that a word of both sides opens ends late, where one core of many stores."""
    shapes = (random_shape(7, number) for number in itertools.count(CROWD, len(KINDS)))
    parameters = next(shape for shape in shapes if shape.side_by_side)
    (mutant,) = (
        m for m in mutants_of(GroupSchedule) if "without exhausted.eq(limit == 2)" in m.name
    )
    with mutant.applied():
        write_bundle(parameters, tmp_path / "late")
    build_library(tmp_path / "late", plain=True)
    manifest = manifest_of(tmp_path / "late")
    checker, run = Checker(tmp_path / "late" / "splitjoin.so", manifest), Soak(7, print)
    monkeypatch.setattr(run, "tell", lambda *arguments: None)
    assert any(run.case(CROWD, n, manifest, checker) for n in range(30))


def test_only_one_operator_of_one_module_is_changed():
    modules = [("a", "c & d"), ("e", "g & h")]
    verilog = "".join(f"module {m}(b);\n  assign b = {v};\nendmodule\n" for m, v in modules)
    assert changed(verilog, "e", "&", "|") == verilog.replace("g & h", "g | h")
    with pytest.raises(ValueError, match="Module 'a' has no assignment with operator '\\^'"):
        changed(verilog, "a", "^", "&")
