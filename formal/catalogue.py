# SPDX-License-Identifier: Apache-2.0
"""Catalogue of all proofs, by name."""

from importlib import import_module

from .proof import PROOFS

__all__ = ["PROOFS"]

#: Modules with proofs, in the order of the document.
MODULES = (
    "streams", "steady", "distribution", "merging", "merged_stops", "orders", "combining",
    "exits", "window_parts", "told_window", "window", "storage_turns", "epochs", "time",
    "timed_pairs", "groups", "facts", "words", "comparisons", "serializers", "engine_queues",
    "cells", "chain_parts", "flow", "handshake_link", "expedited_link", "failures", "core_gates",
    "parity", "resets", "aligned_ports", "rounds", "round_parts", "axi", "source_entry",
    "scalegate", "external_reads", "external_rows", "external_writes", "reducing", "predicates",
)  # fmt: skip

for _module in MODULES:
    import_module(f"formal.{_module}")
