# SPDX-License-Identifier: Apache-2.0
"""Catalogue of all proofs, by name."""

from . import (
    aligned_ports,
    axi,
    cells,
    chain_parts,
    combining,
    comparisons,
    core_gates,
    distribution,
    engine_queues,
    epochs,
    exits,
    expedited_link,
    external_reads,
    external_rows,
    external_writes,
    facts,
    failures,
    flow,
    groups,
    handshake_link,
    merged_stops,
    merging,
    orders,
    parity,
    predicates,
    reducing,
    resets,
    round_parts,
    rounds,
    scalegate,
    serializers,
    source_entry,
    steady,
    storage_turns,
    streams,
    time,
    timed_pairs,
    told_window,
    window,
    window_parts,
    words,
)

__all__ = ["PROOFS"]

MODULES = (
    streams, steady, distribution, merging, merged_stops, orders, combining, exits, window_parts,
    told_window, window, storage_turns, epochs, time, timed_pairs, groups, facts, words,
    comparisons, serializers, engine_queues, cells, chain_parts, flow, handshake_link,
    expedited_link, failures, core_gates, parity, resets, aligned_ports, rounds, round_parts,
    axi, source_entry, scalegate, external_reads, external_rows, external_writes, reducing,
    predicates,
)  # fmt: skip

PROOFS = {proof.name: proof for module in MODULES for proof in module.PROOFS}
