# SPDX-License-Identifier: Apache-2.0
"""Parameters of the components in the proofs: as small as possible, with all features."""

from bench.handshake import Handshake
from hdl.parameters import JoinParameters, KeyField

__all__ = [
    "PAIRED", "SMALL", "chain_parameters", "external_parameters", "group_parameters",
    "index_parameters", "ingress_parameters", "scan_parameters", "window_parameters",
]  # fmt: skip


#: The smallest parameters that have all features.
SMALL = JoinParameters.of(
    cores=2, sub_window=1, keys=(KeyField(name="x", bits=2),), probe_bits=1, fan_in=2, fan_out=2
)


#: The same with an index, two tuples in a word and two results in one.
PAIRED = SMALL.with_(engine="index", tuples_per_word=2)


class Impatient(JoinParameters):
    """Parameters whose groups wait for a few tuples of the other side only."""

    slack = 4


class LeastSlack(JoinParameters):
    """Parameters whose groups wait for two tuples of the other side if one core stores."""

    slack = 2


def ingress_parameters(kind=Impatient, **changes):
    """Return small parameters of an ingress: groups of three, stars up to four probes apart."""
    few = {
        "cores": 1, "sub_window": 1, "keys": (KeyField(name="x", bits=1),), "probes": 3,
        "probe_bits": 2, "timestamp_bits": 0, "comparator": "equality",
    }  # fmt: skip
    return kind.of(**{**few, **changes})


def group_parameters(**changes):
    """Return small parameters of groups: limits of two to six tuples of the other side."""
    return ingress_parameters(LeastSlack, cores=3, **changes)


def scan_parameters(lanes=2, probes=2):
    """Return small parameters of a scan."""
    return JoinParameters.of(
        cores=2, sub_window=2, lanes=lanes, probes=probes, probe_bits=2,
        keys=(KeyField(name="x", bits=1),),
    )  # fmt: skip


def index_parameters():
    """Return small parameters of an index with two banks."""
    return JoinParameters.of(
        cores=8, sub_window=1, keys=(KeyField(name="x", bits=1),), engine="index", probe_bits=0,
        bucket_bits=2,
    )  # fmt: skip


def external_parameters(memory_width=8, memory_burst=4):
    """Return small parameters of windows in external memory, whose latency is not hidden."""
    return JoinParameters.of(
        cores=1, sub_window=1, lanes=2, keys=(KeyField(name="x", bits=1),), store="external",
        memory_width=memory_width, memory_burst=memory_burst, memory_latency=0,
    )  # fmt: skip


def window_parameters(cores=3, sub_window=2, lanes=1, timestamp_bits=0):
    """Return small parameters of a window."""
    return JoinParameters.of(
        cores=cores, sub_window=sub_window, lanes=lanes, timestamp_bits=timestamp_bits,
        keys=(KeyField(name="x", bits=1),), probe_bits=0,
    )  # fmt: skip


#: Chains whose tuples have short numbers, as long as those of two and of three cores have to be.
handshake_2, expedited_2 = (Handshake(expedited=which, ordinal_bits=8) for which in (False, True))
handshake_3, expedited_3 = (Handshake(expedited=which, ordinal_bits=9) for which in (False, True))


def chain_parameters(name, cores=2):
    """Return small parameters of a chain of two or three cores, with the shortest ring there is."""
    return JoinParameters.of(
        cores=cores, sub_window=1, keys=(KeyField(name="x", bits=1),), comparator="equality",
        architecture=f"{__name__}:{name}_{cores}",
    )  # fmt: skip
