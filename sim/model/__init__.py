# SPDX-License-Identifier: Apache-2.0
"""A model of a bundle's accelerator without timing: input words in, result words out.

It is the oracle of the benches, and what ``software:BUNDLE`` opens. The host finds it by name
(:data:`host.devices.software.MODEL`), as it finds the builder of bundles.
What a ScaleGate does with the words of its sources is here, too (:mod:`sim.model.scale_gate`).
"""

__all__: list[str] = []
