# SPDX-License-Identifier: Apache-2.0
"""The test bench of a package, around accelerators of all kinds."""

import pytest

from bench.handshake import HANDSHAKE
from hdl.packaging.files import write_package
from hdl.parameters import KeyField
from hdl.shells.axi import AxiOptions
from tests.hdl.packaging.packaged import TINY, run_bench

XY = (KeyField(name="x", bits=8), KeyField(name="y", bits=5, signed=False))
TWO = TINY.with_(cores=3, keys=XY, tuples_per_word=2, result_streams=2, engine="index")
SHAPES = {
    "bare": (TINY.with_(timestamp_bits=0), None),
    "two of all": (TWO, "axi"),
    "equality with digests": (
        TINY.with_(comparator="equality", digest_bits=4, lanes=2, probes=3), "axi",
    ),
    "rounds": (TINY.with_(rounds=True, cores=2), None),
    "gates": (TINY.with_(failure_cycles=TINY.longest_silence), "axi"),
    "chain": (TINY.with_(architecture=HANDSHAKE, cores=2), "axi"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bench_passes_around_any_accelerator(shape, tmp_path, kept):
    parameters, shell = SHAPES[shape]
    write_package(parameters, tmp_path, shell=shell)
    assert "PASS: " in run_bench(tmp_path, "splitjoin", kept)


#: Shells that look otherwise. The window of the accelerator is larger than the queues of a merge.
LOOKS = {
    "two inputs": AxiOptions(inputs=2),
    "five inputs": AxiOptions(inputs=5, r_inputs=3),
    "two clocks": AxiOptions(bus_clock="separate"),
    "packets": AxiOptions(packet=8),
    "all at once": AxiOptions(inputs=2, bus_clock="separate", names="vitis"),
}


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
def test_the_bench_passes_whatever_the_shell_looks_like(look, tmp_path, kept):
    write_package(TINY.with_(sub_window=30), tmp_path, shell="axi", axi=LOOKS[look])
    assert "PASS: " in run_bench(tmp_path, "splitjoin", kept)


#: Faults of an accelerator, and what the bench says of them.
FAULTS = {
    "a pair is missing": ("if (pairs != expected)", "pairs++; if (pairs != expected)", "pairs"),
    "a star is missing": ("if (stars != 2", "stars--; if (stars != 2", "stars instead of"),
    "a flag is set": ("if (faults != 0)", "faults++; if (faults != 0)", "tell of a fault"),
    "no mark comes": ("send(make_control(OP_FLUSH, '0, '0), '1);", "", "and then nothing within"),
    "another hash": ("MANIFEST_HASH[32*n", "~MANIFEST_HASH[32*n", "Register 0x020 is"),
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_fails_where_it_should(fault, tmp_path, kept):
    old, new, said = FAULTS[fault]
    write_package(TINY, tmp_path, shell="axi")
    bench = tmp_path / "splitjoin_tb.sv"
    assert bench.read_text().count(old) == 1
    bench.write_text(bench.read_text().replace(old, new))
    printed = run_bench(tmp_path, "splitjoin", kept)
    assert said in printed
    assert "PASS" not in printed
