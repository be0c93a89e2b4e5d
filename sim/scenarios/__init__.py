# SPDX-License-Identifier: Apache-2.0
"""Scenarios: the words that simulated accelerators receive, their right answers, and coverage.

The same scenarios run in Amaranth's simulator, in the simulator library and under cocotb.
"""

from .answers import answer, assert_right, expected_results
from .cases import Cases, Flow
from .chain_answers import assert_chain_right, chain_answer
from .crosses import Crosses
from .hostile_words import hostile_scenario
from .illegal import illegal_word
from .merged_inputs import merged_inputs
from .random_words import random_scenario
from .scenario import Scenario
from .workloads import make_scenario, names

__all__ = [
    "Cases",
    "Crosses",
    "Flow",
    "Scenario",
    "answer",
    "assert_chain_right",
    "assert_right",
    "chain_answer",
    "expected_results",
    "hostile_scenario",
    "illegal_word",
    "make_scenario",
    "merged_inputs",
    "names",
    "random_scenario",
]
