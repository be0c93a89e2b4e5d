# SPDX-License-Identifier: Apache-2.0
"""For how long a core that works may show nothing."""

__all__ = ["longest_silence"]

#: Passes of a scan that can lie between a word and its star: of the group that is scanned, of the
#: group that waits, of the group that the word closes, and of one in each register before them.
PASSES = 5
#: Probes of an index that are under way besides two groups.
UNDER_WAY = 64
#: Cycles on the way through the registers of a core.
WAY = 32


def longest_silence(parameters):
    """Return a number of cycles after which a working core has shown a result or taken a word.

    It is for a core that owes a star, or that is offered a word, while its results are taken. A
    pass of a scan reads the whole ring at most. With digests, every key may be a false candidate of
    every probe. A probe of an index reads the whole ring and visits every bucket at most, one after
    the other. A tuple after a long pause expires a whole time-based window, one key per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """
    slots = parameters.ring_rows * parameters.lanes
    if parameters.engine == "index":
        work = (2 * parameters.probes + UNDER_WAY) * (slots + (1 << parameters.bucket_width))
    else:
        candidates = 0 if parameters.digest_bits is None else slots * parameters.probes
        work = PASSES * (parameters.ring_rows + candidates + parameters.probes + WAY)
    return work + (slots if parameters.timestamp_bits else 0) + WAY
