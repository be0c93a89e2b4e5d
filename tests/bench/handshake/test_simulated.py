# SPDX-License-Identifier: Apache-2.0
"""A handshake join in the simulator library: words against the reference, and a join of files."""

import numpy as np
import pyarrow as pa
from pyarrow import csv
import pytest

from hdl.bundle import write_bundle
from host.__main__ import main
from host.devices import open_device
from host.devices.simulated import SimulatedDevice
from host.errors import ManifestError
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios.chain_answers import read_chain
from sim.verilated.library import build_library
from tests.bench.handshake.programs import random_program
from tests.soak.test_runs import CHAINS


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chain") / "bundle"
    write_bundle(CHAINS["handshake"], folder)
    build_library(folder)
    return folder


def run(device, program):
    """Send a program; return all result words up to its last mark."""
    words, marks, cycles = program.packed(), 0, 0
    codec, results = WordCodec(device.manifest), []
    room = np.zeros((1 << 10, device.manifest.result_word.columns), np.uint64)
    while marks < len(program.answer.pairs):
        done = device.exchange(words, room, cycles=10_000)
        words, cycles = words[done.accepted :], cycles + done.cycles
        results.append(room[: done.produced].copy())
        marks += int(codec.marks(results[-1]).sum())
        assert cycles < 500_000
    return np.concatenate(results)


@pytest.mark.long
@pytest.mark.parametrize("stalls", [(0, 0), (100, 0), (0, 200)])
def test_random_programs_answer_like_the_reference(bundle, stalls):
    manifest = Manifest.load(bundle)
    for seed in range(12):
        program = random_program(manifest, seed, tuples=40 << seed % 4, timed=True)
        with SimulatedDevice(bundle, seed=seed, stall_in=stalls[0], stall_out=stalls[1]) as device:
            results = run(device, program)
        assert read_chain(manifest, results) == (program.answer, []), f"seed {seed}"


@pytest.mark.long
def test_a_join_of_files_gives_the_rows_of_the_reference(bundle, tmp_path):
    generator = np.random.default_rng(3)
    answers = []
    for name in ("left", "right"):
        table = pa.table({
            "t": np.sort(generator.integers(0, 400, 60)),
            "x": generator.integers(0, 12, 60),
            f"{name}_row": np.arange(60),
        })  # fmt: skip
        csv.write_csv(table, tmp_path / f"{name}.csv")
    for device in (f"sim:{bundle}", "software:"):
        output = tmp_path / "out.csv"
        arguments = ["join", "--left", str(tmp_path / "left.csv"), "--output", str(output)]
        arguments += ["--right", str(tmp_path / "right.csv"), "--time", "t", "--rows", "9"]
        assert main([*arguments, "--band", "x:x:-1:1", "--device", device]) == 0
        answers.append(csv.read_csv(output))
    assert answers[0].num_rows > 60
    assert answers[0] == answers[1]  # in strict order, which the host restores


def test_there_is_no_model_of_it_in_software(bundle):
    with pytest.raises(ManifestError, match="handshake join, which has no model"):
        open_device(f"software:{bundle}")
