# SPDX-License-Identifier: Apache-2.0
"""All proofs, by name."""

from . import streams, trees

__all__ = ["PROOFS"]

PROOFS = {proof.name: proof for module in (streams, trees) for proof in module.PROOFS}
