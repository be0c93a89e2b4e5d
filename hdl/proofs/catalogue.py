# SPDX-License-Identifier: Apache-2.0
"""All proofs, by name."""

from . import combining, ingress, queues, streams, trees, window

__all__ = ["PROOFS"]

PROOFS = {proof.name: proof for module in (streams, trees, window, ingress, queues, combining) for proof in module.PROOFS}
