# SPDX-License-Identifier: Apache-2.0
"""The self test of a device, for the first time that a board is switched on (`docs/boards.md`)."""

from host.selftest.finding import Finding, Outcome
from host.selftest.steps import HINTS, self_test

__all__ = ["HINTS", "Finding", "Outcome", "self_test"]
