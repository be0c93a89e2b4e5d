# SPDX-License-Identifier: Apache-2.0
"""Prepared trades match where the ratio of their distances is that of a hedge."""

import numpy as np

from bench.experiments.hedge import PARTS, TERMS, trades
from host.operators.verification import reference_pairs
from host.query.queries import Query


def test_bands_of_logarithms_and_signs_are_ratios_of_distances():
    times = np.arange(300)
    left, right = trades(times, 1, 0), trades(times, 2, 1)
    query = Query(band=TERMS, time="t", within=1000)
    found = set(zip(*(rows.tolist() for rows in reference_pairs(left, right, query)), strict=True))
    distances = [np.random.default_rng(seed).normal(0, 10_000, 300) for seed in (1, 2)]
    ratio = distances[1] / distances[0][:, None]
    # Logarithms are rounded, so pairs at the very edge may fall to either side.
    edge = 1 / PARTS
    inside = (-ratio > 1 / 1.05 * (1 + edge)) & (-ratio < 1.05 * (1 - edge))
    near = (-ratio > 1 / 1.05 * (1 - edge)) & (-ratio < 1.05 * (1 + edge))
    assert {tuple(pair) for pair in np.argwhere(inside).tolist()} <= found
    assert found <= {tuple(pair) for pair in np.argwhere(near).tolist()}
    assert 0.01 < len(found) / 300**2 < 0.05


def test_prepared_fields_fit_sixteen_bits():
    rows = trades(np.arange(10_000), 3, 0)
    assert min(rows.column("x").to_pylist()) >= 0
    assert max(rows.column("x").to_pylist()) < 1 << 15
    assert set(rows.column("y").to_pylist()) == {1, 2}
