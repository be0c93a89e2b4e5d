# SPDX-License-Identifier: Apache-2.0
"""All proofs, by name."""

from . import streams

__all__ = ["PROOFS"]

PROOFS = {proof.name: proof for module in (streams,) for proof in module.PROOFS}
