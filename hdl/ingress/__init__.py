# SPDX-License-Identifier: Apache-2.0
"""The root: legal words, their order, groups and stars, prepared tuples."""
