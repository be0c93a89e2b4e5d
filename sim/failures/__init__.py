# SPDX-License-Identifier: Apache-2.0
"""Cores that fail while a join runs on the simulated accelerator."""
