# SPDX-License-Identifier: Apache-2.0
"""What is compiled behaves in every cycle as the Verilog of the bundle does."""

import numpy as np
import pytest

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.device.contract import Stamps
from host.device.simulated import SimulatedDevice
from host.manifest import Manifest
from host.words import WordCodec
from sim import model
from sim.library import build_library
from sim.netlist import UnknownVerilog

X = (KeyField(name="x", bits=8),)
SHAPES = {
    "scan": JoinParameters(cores=2, sub_window=12, keys=X, timestamp_bits=12, lanes=2, probes=2),
    "index": JoinParameters(
        cores=1, sub_window=1 << 12, keys=(*X, KeyField(name="y", bits=40)), engine="index",
        probes=32,
    ),
    "index, not pipelined": JoinParameters(
        cores=1, sub_window=300, keys=(*X, KeyField(name="y", bits=40)), engine="index",
        probes=32, bucket_bits=8, pipelined=False,
    ),
}  # fmt: skip


def converse(bundle, stall):
    """Return results of a random stream with stalls, and the cycle of every word.

    Memories begin with zeros: what they hold otherwise may cost an index cycles.
    """
    generator = np.random.default_rng(stall)
    with SimulatedDevice(bundle, seed=0, stall_in=stall, stall_out=2 * stall) as device:
        codec = WordCodec(device.manifest)
        count = 600
        keys = {key.name: generator.integers(0, 9, count) for key in device.manifest.keys}
        times = np.arange(count) if device.manifest.parameters["timestamp_bits"] else None
        words = np.concatenate(
            [
                *(codec.pack_control(bound, 0, 0) for bound in ("BOUND_LOW", "BOUND_HIGH")),
                codec.pack_control("WINDOW", 0, 11),
                codec.pack_control("PRECISION", 0, 2),
                codec.pack_tuples(generator.integers(0, 2, count), keys, times),
                codec.pack_control("FLUSH"),
            ]
        )
        results = np.zeros((1 << 14, device.manifest.result_word.columns), np.uint64)
        stamps = Stamps.for_arrays(words, results)
        found, sent = [], 0
        for _ in range(4):
            done = device.exchange(words[sent:], results, cycles=30_000, stamps=stamps)
            sent += done.accepted
            found += results[: done.produced].tolist() + stamps.produced[: done.produced].tolist()
        return found, sent, device.counters()


@pytest.mark.parametrize(
    "shape", [pytest.param(name, marks=[pytest.mark.long] * (name == "index")) for name in SHAPES]
)
def test_every_word_comes_in_the_cycle_in_which_the_bundle_has_it(shape, tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    write_bundle(SHAPES[shape], tmp_path / "bundle")
    build_library(tmp_path / "bundle")
    written_anew = [converse(tmp_path / "bundle", stall) for stall in (0, 60)]
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(model, "simulated_text", lambda verilog: verilog)
    write_bundle(SHAPES[shape], tmp_path / "as_it_is")
    build_library(tmp_path / "as_it_is")
    assert [converse(tmp_path / "as_it_is", stall) for stall in (0, 60)] == written_anew
    assert len(written_anew[0][0]) > 100


def test_modules_have_one_process_and_large_memories_are_fetched_ahead(tmp_path):
    write_bundle(SHAPES["index"], tmp_path)
    manifest = Manifest.load(tmp_path)
    verilog = (tmp_path / manifest.files["verilog"]).read_text()
    text = model.simulated_text(verilog)
    assert text.count("\nmodule ") + 1 == text.count("always @") == 2
    assert text.count("VL_PREFETCH_RD") == 1  # of the keys; all else is in a nearer cache


def test_what_is_not_a_netlist_is_compiled_as_it_is():
    verilog = "module splitjoin(clk);\n  input clk;\n  initial $finish;\nendmodule\n"
    assert model.simulated_text(verilog) == verilog
    with pytest.raises(UnknownVerilog):
        model.one_process_each(verilog, top="splitjoin", stay=lambda name: False)
