# SPDX-License-Identifier: Apache-2.0
"""The root of the distribution tree: legality and order of words, groups and stars, preparation."""
