# SPDX-License-Identifier: Apache-2.0
"""Catalogue of all proofs, by name."""

from . import (
    combining,
    distribution,
    engine_queues,
    facts,
    failures,
    groups,
    merging,
    orders,
    resets,
    serializers,
    steady,
    streams,
    time,
    window,
    words,
)

__all__ = ["PROOFS"]

MODULES = (
    streams, steady, distribution, merging, orders, combining, window, time, groups, facts, words,
    serializers, engine_queues, failures, resets,
)  # fmt: skip

PROOFS = {proof.name: proof for module in MODULES for proof in module.PROOFS}
