# SPDX-License-Identifier: Apache-2.0
"""Formal proofs about components, and the mutants that the proofs must detect."""
