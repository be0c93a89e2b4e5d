# SPDX-License-Identifier: Apache-2.0
"""Joins under random epochs: small ones, and ones in which something is wrong."""

import numpy as np
import pytest

from bench import epochs
from bench.epochs import ENGINES, compare
from host.reference.join import reference_join
from host.reference.window import CountWindow, TimeWindow
from host.session.records import Measured
from tests.host.small_bundles import write_manifest


@pytest.fixture(scope="module", params=sorted(ENGINES))
def device(request, tmp_path_factory):
    """URI of a software device with the parameters of an accelerator of the figure."""
    folder = tmp_path_factory.mktemp("epochs") / "bundle"
    return f"software:{write_manifest(ENGINES[request.param], folder)}"


@pytest.mark.parametrize("window", [CountWindow(24), TimeWindow(40)])
def test_random_epochs_lose_and_repeat_nothing(device, window):
    found = compare(device, window, tuples=3_000, epochs=60, seed=3)
    assert found.bad == 0
    assert found.pairs > 500
    assert found.epochs + found.superseded == 60
    assert found.epochs > 30


@pytest.mark.parametrize(("size", "name"), [(25, "lost"), (23, "wrong")])
def test_pairs_that_differ_are_counted(device, monkeypatch, size, name):
    def other(arrivals, predicate, window):
        return reference_join(arrivals, predicate, CountWindow(size))

    monkeypatch.setattr(epochs, "reference_join", other)
    found = compare(device, CountWindow(24), tuples=1_000, epochs=10, seed=4)
    assert found.bad == getattr(found, name) > 0


def test_repeated_pairs_are_counted(device, monkeypatch):
    pairs = Measured.pairs.fget
    repeating = property(lambda self: tuple(np.append(rows, rows[[0, 0]]) for rows in pairs(self)))
    monkeypatch.setattr(Measured, "pairs", repeating)
    found = compare(device, CountWindow(24), tuples=1_000, epochs=10, seed=4)
    assert (found.lost, found.repeated, found.wrong) == (0, 2, 0)
