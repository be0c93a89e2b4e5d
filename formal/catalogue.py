# SPDX-License-Identifier: Apache-2.0
"""Catalogue of all proofs, by name."""

from importlib import import_module

from .proof import PROOFS

__all__ = ["PROOFS"]

#: Modules with proofs, in the order of the document.
MODULES = (
    "streams", "merging", "combining", "windows", "turns", "time", "groups", "facts", "words",
    "comparisons", "serializers", "engine_queues", "chain_parts", "links", "failures", "resets",
    "rounds", "axi", "source_entry", "scalegate", "external", "reducing", "predicates",
)  # fmt: skip

for _module in MODULES:
    import_module(f"formal.{_module}")
