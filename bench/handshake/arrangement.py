# SPDX-License-Identifier: Apache-2.0
"""The arrangements of both handshake joins: what they differ in from a SplitJoin."""

from dataclasses import dataclass
import re

from amaranth.utils import ceil_log2

from hdl.arrangement import Arrangement
from hdl.engine import require_values
from hdl.parts import require

from .accelerator import ChainAccelerator
from .layouts import RING_RESERVE, ordinals_layout

__all__ = ["HANDSHAKE", "LOW_LATENCY", "Handshake", "handshake", "low_latency_handshake"]

#: What parameters call the handshake join, and the low-latency one.
HANDSHAKE, LOW_LATENCY = "bench.handshake:handshake", "bench.handshake:low_latency_handshake"

#: What the cores of a chain cannot be, and why.
CHAIN = {
    "engine": ("scan", "each core scans its part of the window"),
    "lanes": (1, "a core has one comparator for each side"),
    "probes": (1, "tuples pass one by one"),
    "digest_bits": (None, "a core compares whole keys"),
    "tuples_per_word": (1, "tuples pass one by one"),
    "result_streams": (1, "pairs of both sides leave in no order"),
    "rounds": (False, "a chain of cores has no stars"),
    "parity": (False, "only the cores of 'splitjoin' have gates, which close for a flipped bit"),
    "failure_cycles": (0, "only the cores of 'splitjoin' have gates"),
    "clock_requests": (False, "tuples flow through all cores of a chain"),
    "store": ("chip", "the cores of a chain keep their windows on the chip"),
    "value_bits": (0, "a chain of cores does not say when a tuple has met all"),
}
#: Rows of a handshake join's ring beyond the sub-window. Tests and the soak found it to be enough.
HANDSHAKE_SLACK = 14


@dataclass(frozen=True, kw_only=True)
class Handshake(Arrangement):
    """A chain of cores through which tuples flow, with one comparator per core and side.

    Parameters
    ----------
    expedited : bool
        Whether it is the low-latency handshake join, in which tuples do not wait for others.
    ordinal_bits : int
        Bits of the numbers that results name tuples by. By default a host may send 16 million
        tuples before it looks at a result.
    """

    expedited: bool = False
    ordinal_bits: int = 24

    has_stars = False
    predicate_cycles = 1
    rings = re.compile(r"\.chain\.core_(\d+)\.segment_([rs])\.(ring)\.block_\d+\.")

    def check(self, parameters):
        """Check the parameters of a chain.

        Its cores compare numbers of tuples modulo ``2 ** ordinal_bits``, so the numbers of all
        tuples that are under way at once must lie within half of that range.
        """
        what = f"Architecture {parameters.architecture!r}"
        require_values(parameters, what, CHAIN)
        least = ceil_log2(4 * parameters.cores * parameters.ring_rows)
        require(
            least <= self.ordinal_bits <= 32,
            f"{what} numbers tuples with {self.ordinal_bits} bits, of {least} to 32 for such"
            " windows",
        )

    def slack(self, parameters):
        """Return the rows for tuples whose expiry is still on its way."""
        return low_latency_slack(parameters.cores) if self.expedited else HANDSHAKE_SLACK

    def pair_layout(self, parameters):
        return ordinals_layout(parameters)

    def described(self, parameters, operations):
        chain = {
            "architecture": "low-latency-handshake" if self.expedited else "handshake",
            "ordinal_bits": self.ordinal_bits,
            "order": "none",
            "emptied_by": ["CLEAR"] if self.expedited else list(operations),
        }
        return {"chain": chain}

    def accelerator(self, parameters):
        return ChainAccelerator(parameters)


def low_latency_slack(cores):
    """Return the ring rows beyond the sub-window that a low-latency handshake join needs.

    With so many, no core ever waits for a word that expires a tuple, in either lane:

    - A tuple enters its lane when the other lane's words before it have been taken where they
      enter. So when it is taken anywhere, the words that expire all tuples beyond one window of its
      side are in the chain, or have passed.
    - Between the core where they enter and one that is ``n`` cores on, there are at most ``4 * n``
      of them: each link holds two words in the register where it begins, and two where it ends. So
      a core has seen at most ``capacity + 4 * (cores - 1)`` tuples of a side that it has not seen
      expire.
    - Their numbers are consecutive, and every ``cores``-th of them is kept here. That makes at most
      ``sub_window + 4 - 4 // cores`` rows.
    - A core takes words while fewer than ``ring_rows - RING_RESERVE`` rows are in use
      (:mod:`bench.handshake.layouts`), and
      :attr:`~hdl.parameters.JoinParameters.ring_rows` has three rows beside the slack.

    Parameters
    ----------
    cores : int
    """
    return 4 - 4 // cores + RING_RESERVE - 3 + 1


#: Of Teubner and Mueller, and of Roy, Teubner and Gemulla.
handshake, low_latency_handshake = Handshake(), Handshake(expedited=True)
