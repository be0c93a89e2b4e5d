# SPDX-License-Identifier: Apache-2.0
"""Predicates of one's own: what they are, and two examples of a file each."""
