# SPDX-License-Identifier: Apache-2.0
"""The join predicate: comparators, carry chains, and digests of keys."""
