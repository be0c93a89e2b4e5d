# SPDX-License-Identifier: Apache-2.0
"""Catalogue of all proofs, by name."""

from . import (
    chain_parts,
    combining,
    distribution,
    engine_queues,
    facts,
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
    serializers, engine_queues, chain_parts, resets,
)  # fmt: skip

PROOFS = {proof.name: proof for module in MODULES for proof in module.PROOFS}
