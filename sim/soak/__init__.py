# SPDX-License-Identifier: Apache-2.0
"""The soak: random accelerators, random programs of input words, and a model of its own.

``words``, ``matching`` and ``model`` are written from ``docs/architecture.md`` and from a bundle's
``manifest.json``. They import nothing of ``hdl`` and ``host``, so that a fault of those is no fault
of theirs (``tests/sim/soak/test_independence.py``).
"""
