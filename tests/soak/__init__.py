# SPDX-License-Identifier: Apache-2.0
"""The soak: random accelerators, random programs of input words, and a model of its own.

The model, and all that it is made of, is written from ``docs/architecture.md`` and from a bundle's
``manifest.json``. It imports nothing of ``hdl``, ``host`` and ``sim``, so that a fault of those is
no fault of its own (``test_independence.py``). Only ``shapes`` and ``runs`` build accelerators.
"""
