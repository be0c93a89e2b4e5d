# SPDX-License-Identifier: Apache-2.0
"""States that a two-way merge can be in while its inputs come and go, as invariants."""

from types import SimpleNamespace

from amaranth import *

from hdl.scalegate.port import is_late
from hdl.scalegate.words import GateKind

from .register_words import register_words

__all__ = ["leaving_states"]


def leaving_states(bench, dut, sources, queues, leaves):
    """Claim the states of a merge without barriers, given what the bench knows of it.

    Parameters
    ----------
    dut : TimestampMerge
    sources : list of namespace
        Of each input: ``shown``, the latest time since it came; ``left``, its latest word is LEAVE.
    queues : list of Watch
        Bodies of the tuples of each input inside. A body begins with the tuple's own time.
    leaves : namespace
        What has left: ``reached`` is the latest time, ``silent`` that the latest word was LEAVE.
    """
    ports = bench.inside(dut, "ports")
    names = ("second", "same", "quiet", "silent", "floor")
    second, same, quiet, silent, floor = (bench.inside(dut, name) for name in names)
    bench.invariant(silent == leaves.silent)
    bench.invariant(floor == leaves.reached)
    places = [Value.cast(port.place) for port in ports]
    bench.invariant(second == (places[1] < places[0]))
    bench.invariant(same == (ports[0].place.time == ports[1].place.time))
    for n, (port, source, queue) in enumerate(zip(ports, sources, queues, strict=True)):
        comes_back(bench, port, source, quiet, floor)
        contents(bench, port, n, queue)
        offered(bench, port, second == n, quiet, silent, floor)
    joined, news = ([bench.inside(port, name) for port in ports] for name in ("joined", "news"))
    marks = [
        ~port.filled & ~port.place.gone & there for port, there in zip(ports, joined, strict=True)
    ]
    bench.invariant(~marks[0] | ~second | news[0])
    known = marks[1] & ~second & ~news[1]
    bench.invariant(~known | (same & ~ports[0].place.gone))
    bench.invariant(~known | quiet | ~ports[1].offers | silent | ports[0].offers)


def comes_back(bench, port, source, quiet, floor):
    """Claim how an input that has left takes its steps back, and what its watermark is."""
    names = ("joined", "settling", "behind", "steady", "checked", "late", "mark", "gone")
    joined, settling, behind, steady, checked, late, mark, gone = (
        bench.inside(port, name) for name in names
    )
    word, sampled = port.i.payload, bench.inside(port, "sampled")
    bench.invariant(~settling | (quiet & gone))
    bench.invariant(~gone | ~joined | (settling & (mark == floor)))
    bench.invariant((joined & ~settling) | (~steady & ~checked & (~joined | ~late)))
    bench.invariant(~joined | ~settling | behind)
    bench.invariant(~joined | behind | (~steady & ~checked & ~late))
    bench.invariant(~joined | Mux(behind, source.shown <= mark, source.shown == mark))
    bench.invariant(~steady | (port.i.valid & (sampled.kind == word.kind)))
    bench.invariant(~steady | (sampled.time == word.time))
    bench.invariant(~checked | (steady & (late == is_late(bench.m, word, mark))))
    bench.invariant(joined | (source.left & (source.shown == 0)))
    bench.invariant(~source.left | ~(joined | settling) | port.i.valid)
    bench.invariant(~source.left | ~joined | behind)


def contents(bench, port, number, queue):
    """Claim what a port holds: tuples whose times do not fall, up to its watermark."""
    held, head, joined, gone, mark, fresh = (
        bench.inside(port, name) for name in ("held", "head", "joined", "gone", "mark", "fresh")
    )
    words = [SimpleNamespace(there=port.filled, word=head), *register_words(bench, held, head)]
    bench.invariant(queue.level == sum(one.there for one in words))
    latest = head.time
    for n, one in enumerate(words):
        word, own = one.word, one.word.body[: len(head.time)]
        bench.invariant(~one.there | ((word.kind == GateKind.TUPLE) & (word.source == number)))
        bench.invariant(~one.there | Mux(word.late, own < word.time, own == word.time))
        rank = sum((other.there for other in words[:n]), C(0))
        here = queue.watching & one.there & (queue.before == rank)
        bench.invariant(~here | (word.body == queue.watched))
        bench.invariant(~one.there | (word.time >= latest))
        latest = bench.wire(Mux(one.there, word.time, latest))
    _, following, _ = words
    bench.invariant(~gone | (~port.filled & ~following.there))
    bench.invariant(following.there | (port.next_place.time == mark))
    bench.invariant(~joined | gone | Mux(fresh, mark > latest, mark == latest))


def offered(bench, port, chosen, quiet, silent, floor):
    """Claim what a port offers: every tuple, a watermark that is news, and one LEAVE."""
    head, gone, ends, news = (bench.inside(port, name) for name in ("head", "gone", "ends", "news"))
    bench.invariant(~ends)
    bench.invariant(gone | (head.time >= floor))
    bench.invariant(~port.filled | port.offers)
    mark = bench.wire(~port.filled & ~gone)
    bench.invariant(~mark | ((head.kind == GateKind.WATERMARK) & ~head.late))
    bench.invariant(~gone | ~port.offers | (head.kind == GateKind.LEAVE))
    bench.invariant(~mark | ~news | port.offers)
    current = chosen & ~quiet
    bench.invariant(~current | ~mark | (port.offers == (silent | (head.time > floor))))
    bench.invariant(~current | ~gone | (port.offers == ~silent))
