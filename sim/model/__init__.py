# SPDX-License-Identifier: Apache-2.0
"""A model of a bundle's accelerator without timing: input words in, result words out.

It is the oracle of the benches, and what ``software:BUNDLE`` opens. The host finds it by name
(:data:`host.devices.software.MODEL`), as it finds the builder of bundles.
"""

__all__: list[str] = []
