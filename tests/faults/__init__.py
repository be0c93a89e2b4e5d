# SPDX-License-Identifier: Apache-2.0
"""Faults put into the hardware at random, to see what notices them: ``python -m tests.faults``."""
