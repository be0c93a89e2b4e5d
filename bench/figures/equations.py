# SPDX-License-Identifier: Apache-2.0
"""The six equations of the SplitJoin paper's section 6, letter by letter, in any unit of time.

In all of them ``k`` is the number of join cores, ``w`` the tuples of one side in a core's
sub-window, ``t_link`` the time from one node to the next (T_CL), ``t_probe`` the time to compare a
pair (T_P), ``t_monitor`` the time to watch for races in a handshake join (T_ML) and ``t_collect``
the time to collect results (T_Col). :mod:`host.protocol.cost_model` fills in an accelerator's
terms.
"""

from collections.abc import Iterable, Sequence

from host.protocol.cost_model import levels

__all__ = [
    "handshake_processing_latency",
    "handshake_visiting_latency",
    "processing_latency",
    "processing_latency_of_equal_paths",
    "processing_latency_of_paths",
    "visiting_latency",
]


def handshake_processing_latency(
    k: int, w: float, *, t_link: float, t_monitor: float, t_probe: float, t_collect: float
) -> float:
    """Equation 1: processing latency of the low-latency handshake join, a chain of cores."""
    return t_link + (k - 1) * (t_link + t_monitor) + w * t_probe + t_collect


def handshake_visiting_latency(
    k: int, w: float, *, t_link: float, t_monitor: float, t_probe: float
) -> float:
    """Equation 2: mean visiting latency of the low-latency handshake join."""
    return t_link + (k - 1) / 2 * (t_link + t_monitor) + w / 2 * t_probe


def processing_latency_of_paths(
    links: Iterable[Sequence[float]], w: float, t_probes: Iterable[float], t_collect: float
) -> float:
    """Equation 3: processing latency of SplitJoin, whose slowest core counts.

    Parameters
    ----------
    links : iterable of sequence of float
        For each core, the time that a tuple takes on each link of its path.
    w : float
        Tuples that a probe meets in a core.
    t_probes : iterable of float
        For each core, the time to compare a pair.
    t_collect : float
        Time to collect the results of all cores.
    """
    cores = zip(links, t_probes, strict=True)
    return max(sum(path) + w * t_probe for path, t_probe in cores) + t_collect


def processing_latency_of_equal_paths(
    k: int, b: int, w: float, *, t_links: Sequence[float], t_probes: Sequence[float],
    t_collect: float,
) -> float:  # fmt: skip
    """Equation 4: the same where the links of a path take equally long, one time for each core."""
    depth = levels(k, b)
    return processing_latency_of_paths(
        ([t_link] * depth for t_link in t_links), w, t_probes, t_collect
    )


def processing_latency(k: int, b: int, c: int, w: float, *, t_link: float, t_probe: float) -> float:
    """Equation 5: the same with equal cores and links, and a gathering tree of arity ``c``."""
    return t_link * levels(k, b) + w * t_probe + t_link * levels(k, c)


def visiting_latency(k: int, b: int, w: float, *, t_link: float, t_probe: float) -> float:
    """Equation 6: mean visiting latency of SplitJoin, up to the comparison of the pair."""
    return t_link * levels(k, b) + w / 2 * t_probe
