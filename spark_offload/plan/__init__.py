# SPDX-License-Identifier: Apache-2.0
"""Queries over batches as plans: everything checked and decided before anything runs."""
