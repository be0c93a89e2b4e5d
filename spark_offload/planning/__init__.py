# SPDX-License-Identifier: Apache-2.0
"""The join as a plan: everything checked and decided before anything runs."""
