# SPDX-License-Identifier: Apache-2.0
"""The simulation of a command by itself does the work that it did in the command."""

from functools import partial

import pyarrow.parquet as pq
import pytest

from bench.peers import kit
from bench.peers.alone import recorded, simulate
from bench.peers.workload import Workload
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.simulated_bundle import simulated_bundle


@pytest.mark.long
def test_words_of_a_command_are_offered_again(tmp_path):
    workload = Workload(tmp_path, rows=300, within=40, keys=20)
    workload.write()
    uri = simulated_bundle(PARAMETERS["index, two in a word"], tmp_path / "bundle")
    bundle = uri.removeprefix("sim:")
    answers = []
    for run in (1, 2):
        path = tmp_path / f"{run}.parquet"
        recording = recorded(partial(asof, workload, path), bundle)
        answers.append(pq.read_table(path))
        words = sum(map(len, recording.parts))
        assert recording.uri == uri
        assert workload.rows <= words <= 2 * workload.rows + 50
        assert recording.marks > 1
        # The same words take the same cycles, at least one for each of them.
        assert words <= simulate(recording) == simulate(recording)
    assert answers[0] == answers[1]
    assert answers[0].num_rows > 100


def asof(workload, path, uri):
    kit.asof(workload, uri, path)
