# SPDX-License-Identifier: Apache-2.0
"""The join predicate: comparators, and what keys are reduced to for them."""
