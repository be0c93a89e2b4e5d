# SPDX-License-Identifier: Apache-2.0
"""The right answer of a chain of cores, which no software device computes.

A chain names both tuples of a pair by their numbers, and the order of its pairs is free between two
marks. The model of the soak answers for it.
"""

import json
from pathlib import Path

from sim.soak.chains import ChainModel
from sim.soak.compare import difference
from sim.soak.results import read_results

__all__ = ["assert_chain_right", "chain_answer"]


def chain_answer(bundle, scenario):
    """Return the model's :class:`sim.soak.model.Answer` to a scenario."""
    return ChainModel(described(bundle)).answer(scenario.words)


def assert_chain_right(bundle, results, answer):
    """Compare a chain's results with the model's answer.

    Parameters
    ----------
    bundle : path-like
        Bundle of the chain.
    results : array of uint64
        All result words, one per row.
    answer : sim.soak.model.Answer
        From :func:`chain_answer`.

    Raises
    ------
    AssertionError
        If a pair is missing, repeated, wrong, or beyond a mark; or if a mark or its faults are
        wrong. Pairs count after an overflow, too.
    """
    manifest = described(bundle)
    found, wrong = read_results(manifest, results)
    wrong = wrong or difference(answer, found, manifest["parameters"]["engine"])
    assert wrong is None, wrong


def described(bundle):
    """Return the manifest of a bundle as the model reads it."""
    return json.loads((Path(bundle) / "manifest.json").read_text(encoding="utf-8"))
