# SPDX-License-Identifier: Apache-2.0
"""Result words of regions for the tests of the gathering network."""

import random

from hdl.parameters import JoinParameters
from hdl.words.results import ResultKind, node_result

__all__ = ["gathering_parameters", "punctuation", "random_groups", "region_pair", "region_words"]


def gathering_parameters(cores, fan_in, *, gates=False, parity=False):
    """Parameters of a small accelerator, whose cores may have gates."""
    parameters = JoinParameters.of(cores=cores, fan_in=fan_in, sub_window=100, probe_bits=4)
    if gates or parity:
        # An index with two results in a word is silent for longer.
        paired = parameters.with_(engine="index", tuples_per_word=2)
        silence = max(parameters.longest_silence, paired.longest_silence)
        return parameters.with_(failure_cycles=silence, parity=parity)
    return parameters


def region_pair(row):
    """A pair as a region emits it, marked by ``row``."""
    return {"kind": ResultKind.PAIR, "body": {"pair": {"probe": row % 16, "row": row}}}


def punctuation(kind, *, overflow=0, disorder=0, illegal=0, free=0, **failure):
    """A star or mark as a region emits it; ``failed`` and ``failed_core`` if cores have gates."""
    flags = {"overflow": overflow, "disorder": disorder, "illegal": illegal, "free": free}
    return {"kind": kind, "body": {"punctuation": {**flags, **failure}}}


def region_words(parameters, words):
    """The words as integers."""
    layout = node_result(parameters, 0)
    return [layout.const(word).as_value().value for word in words]


def random_groups(seed, *, ports, groups, most=4):
    """For every port, a list of groups of rows."""
    generator = random.Random(seed)
    return [
        [
            [generator.randrange(100) for _ in range(generator.randrange(most))]
            for _ in range(groups)
        ]
        for _ in range(ports)
    ]
