# SPDX-License-Identifier: Apache-2.0
"""A busy accelerator takes the cycles that docs/scan-engine.md predicts."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.devices import Stamps
from host.devices.simulated import SimulatedDevice
from host.protocol.codecs import WordCodec
from host.protocol.cost_model import JoinSize, estimated_cycles
from host.query.queries import Query
from host.session.join import Join
from sim.verilated.library import build_library

XY = tuple(KeyField(name=name, bits=16) for name in "xy")
BOUNDS = ("BOUND_LOW", "BOUND_HIGH")
#: Cores, lanes, probes.
SHAPES = [(2, 3, 5)]
MORE = [(1, 1, 1), (5, 2, 4), (3, 1, 8)]


def shaped(cores, lanes, probes):
    """Return parameters; one library of such accelerators serves the experiments' tests, too."""
    return JoinParameters.of(cores=cores, sub_window=90, keys=XY, lanes=lanes, probes=probes)


@pytest.fixture(
    scope="module",
    params=[*SHAPES, *(pytest.param(shape, marks=pytest.mark.long) for shape in MORE)],
    ids=lambda shape: "-".join(map(str, shape)),
)
def accelerator(request, tmp_path_factory):
    """Parameters, and a bundle with its library."""
    parameters = shaped(*request.param)
    folder = tmp_path_factory.mktemp("cycles") / "bundle"
    write_bundle(parameters, folder)
    build_library(folder)
    return parameters, folder


def pass_cycles(parameters, window, core, first, last):
    """Cycles of a pass for probes that see ``first`` and ``last`` tuples of the other side."""
    lanes = parameters.engine.lanes
    oldest = max(0, -(-(first - window - core) // parameters.cores))
    newest = -(-(last - core) // parameters.cores)
    rows = -(-newest // lanes) - oldest // lanes
    return max(rows, 2 * parameters.engine.probes + 1)


def predicted(parameters, window, seen, groups):
    """Cycles of the slowest region for ``groups`` groups of probes, sides arriving in turn."""
    probes = parameters.engine.probes
    return max(
        sum(
            pass_cycles(parameters, window, core, begin, begin + probes - 1)
            for begin in range(seen, seen + groups * probes, probes)
        )
        for core in range(parameters.cores)
    )


def measured(parameters, bundle, window, seen, groups):
    """Cycles from the first star of a side to the one ``groups`` later, and the rate of pairs."""
    with SimulatedDevice(bundle) as device:
        codec = WordCodec(device.manifest)
        count = 2 * (seen + (groups + 1) * parameters.engine.probes)
        keys = {"x": np.arange(count) % 30_000, "y": np.zeros(count, np.int64)}
        words = np.concatenate(
            [
                *(codec.pack_control(name, key, 0) for name in BOUNDS for key in range(2)),
                *(codec.pack_control("WINDOW", side, window) for side in range(2)),
                codec.pack_control("PRECISION", 0, parameters.engine.probes),
                codec.pack_tuples(np.arange(count) % 2, keys),
                codec.pack_control("FLUSH"),
            ]
        )
        results = np.zeros((1 << 16, device.manifest.result_word.columns), np.uint64)
        stamps = Stamps.for_arrays(words, results)
        stars, sent, marks = [], 0, 0
        while marks < 2:
            done = device.exchange(words[sent:], results, cycles=100_000, stamps=stamps)
            sent += done.accepted
            found = codec.unpack_results(results[: done.produced])
            of_r = (found.kind == codec.star) & (found.side == 0)
            stars += stamps.produced[: done.produced][of_r].tolist()
            marks += int((found.kind == codec.mark).sum())
    return stars[-1] - stars[-1 - groups]


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_cycles_of_groups_in_a_row_are_the_rows_that_their_passes_read(accelerator, data):
    parameters, bundle = accelerator
    window = data.draw(st.integers(1, parameters.capacity), label="window")
    groups = data.draw(st.integers(20, 40), label="groups")
    filled = -(-window // parameters.engine.probes) * parameters.engine.probes
    expected = predicted(parameters, window, filled + parameters.engine.probes, groups)
    found = measured(parameters, bundle, window, filled, groups)
    assert (
        expected - 2 * parameters.engine.probes - 8
        <= found
        <= 1.02 * expected + 2 * parameters.engine.probes + 8
    )


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_the_cycles_of_a_join_are_estimated_from_its_size(accelerator, data):
    parameters, bundle = accelerator
    window = data.draw(st.integers(1, parameters.capacity), label="window")
    rows = data.draw(st.tuples(*[st.integers(200, 600)] * 2), label="rows")
    # Sides in turn, as far as both go; nothing matches.
    tables = [
        pa.table({"t": np.arange(count), "x": np.full(count, side, np.int16)})
        for side, count in enumerate(rows)
    ]
    query = Query(on="x", time="t", rows=window)
    with SimulatedDevice(bundle) as device:
        join = Join(*tables, query, device)
        assert join.run().table.num_rows == 0
        # A side that goes on alone meets the last rows of the other one.
        met = [
            np.minimum(np.minimum(np.arange(count), other), window).mean()
            for count, other in zip(rows, reversed(rows), strict=True)
        ]
        size = JoinSize(rows, tuple(reversed(met)))
        estimate = estimated_cycles(device.manifest, size)
    assert 0.75 * estimate - 100 <= join.measured.cycles <= 1.35 * estimate + 100
