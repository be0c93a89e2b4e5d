# SPDX-License-Identifier: Apache-2.0
"""Trades match where the ratio of their distances is that of a hedge, and nowhere else."""

from fractions import Fraction

import numpy as np
import pytest

from bench.experiments.elastic import COMPANIES, trades
from bench.experiments.joins import ACCELERATORS, HEDGE, HEDGE_BITS
from host.operators.verification import reference_pairs
from host.query.queries import Query


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pairs_are_those_of_the_ratio(seed):
    times = np.arange(150)
    left, right = trades(times, seed), trades(times, 50 + seed)
    query = Query(where=HEDGE, time="t", within=1000)
    found = zip(*(rows.tolist() for rows in reference_pairs(left, right, query)), strict=True)

    def distances(rows):
        return [row["size"] if row["rises"] else -row["size"] for row in rows.to_pylist()]

    least, most = -Fraction(105, 100), -Fraction(100, 105)
    companies = [rows.column("company").to_pylist() for rows in (left, right)]
    wanted = {
        (i, j)
        for i, own in enumerate(distances(left))
        for j, other in enumerate(distances(right))
        if least <= Fraction(other, own) <= most and companies[0][i] != companies[1][j]
    }
    assert set(found) == wanted
    assert 0.005 < len(wanted) / len(times) ** 2 < 0.05


def test_fields_hold_what_trades_have():
    rows = trades(np.arange(100_000), 3)
    for name, bits in HEDGE_BITS.items():
        values = rows.column(name).to_numpy()
        assert 0 <= values.min() <= values.max() < 1 << bits
    assert rows.column("size").to_numpy().min() >= 1
    assert rows.column("company").to_numpy().max() == COMPANIES - 1
    assert ACCELERATORS["hedge-8"].predicate.where == HEDGE
