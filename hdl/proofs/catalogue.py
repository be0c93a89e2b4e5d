# SPDX-License-Identifier: Apache-2.0
"""All proofs, by name."""

from . import combining, ingress, queues, resets, streams, trees, window, words

__all__ = ["PROOFS"]

PROOFS = {
    proof.name: proof
    for module in (streams, trees, window, ingress, queues, combining, resets, words)
    for proof in module.PROOFS
}
