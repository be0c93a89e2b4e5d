# SPDX-License-Identifier: Apache-2.0
"""The soak finds one wrong operator anywhere in the Verilog of an accelerator, within seconds."""

import time

import pytest

from sim.soak.bundles import built, manifest_of
from sim.soak.checking import Checker
from sim.soak.mutants import changed, write_mutant
from sim.soak.soak import Soak
from sim.verilated.library import build_library
from tests.conftest import ROOT
from tests.host.small_bundles import BUNDLES
from tests.host.test_device_external import LARGE
from tests.host.test_driver_simulated import PARAMETERS
from tests.sim.soak.test_soak import CHAINS, LARGE_EFFORT

SCAN = BUNDLES["tiny"].with_(tuples_per_word=2)
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
    run = Soak(7, print, effort=LARGE_EFFORT if parameters.is_external else EFFORT)
    monkeypatch.setattr(run, "tell", lambda *arguments: None)
    began = time.process_time()
    found = next((n for n in range(PROGRAMS) if run.case(0, n, manifest, checker)), None)
    seconds = time.process_time() - began
    print(f"{module}: {old} -> {new}: program {found}, {seconds:.1f} s")
    assert found is not None
    assert seconds < SECONDS


def test_only_one_operator_of_one_module_is_changed():
    modules = [("a", "c & d"), ("e", "g & h")]
    verilog = "".join(f"module {m}(b);\n  assign b = {v};\nendmodule\n" for m, v in modules)
    assert changed(verilog, "e", "&", "|") == verilog.replace("g & h", "g | h")
    with pytest.raises(ValueError, match="Module 'a' has no assignment with operator '\\^'"):
        changed(verilog, "a", "^", "&")
