# SPDX-License-Identifier: Apache-2.0
"""Registers of a shell: one table, and everything that is written from it."""
