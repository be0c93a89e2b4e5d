# SPDX-License-Identifier: Apache-2.0
"""The meaning of a stream join: its inputs, windows and predicates, and the reference join."""
