# SPDX-License-Identifier: Apache-2.0
import pytest

from bench.figures.circuits import received
from bench.handshake import HANDSHAKE, LOW_LATENCY

CHAINS = (HANDSHAKE, LOW_LATENCY)


@pytest.mark.few(1)
@pytest.mark.parametrize("architecture", CHAINS)
def test_a_chain_of_which_a_core_stops_soon_takes_nothing_more(architecture):
    sub_window, cores = 4, 3
    going = received(architecture, cores, None, sub_window=sub_window)
    assert all(count > 8 * sub_window for count in going[1])
    stopped = received(architecture, cores, 1, sub_window=sub_window)
    # What is under way: four words on each link, and the word that a core works at.
    assert all(count <= 5 * cores for core in stopped for count in core)
