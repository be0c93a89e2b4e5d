# SPDX-License-Identifier: Apache-2.0
"""States that a two-way merge can be in while both of its inputs stay, as invariants."""

from types import SimpleNamespace

from amaranth import *

from hdl.scalegate.words import GateKind

from .register_words import register_words

__all__ = ["merge_states"]


def merge_states(bench, dut, sources, queues, leaves, last, identity):
    """Claim the states of a merge, given what the bench knows of its inputs and its output.

    Parameters
    ----------
    dut : TimestampMerge
    sources : list of Progress
        What each input has said.
    queues : list of Watch
        Tuples and barriers of each input inside.
    leaves : namespace
        What has left: ``reached`` is its latest time.
    last : Value
        Source and time of the latest tuple in this epoch.
    identity : function
        Returns what is watched of a word.
    """
    ports = bench.inside(dut, "ports")
    second, same, quiet, silent = (
        bench.inside(dut, name) for name in ("second", "same", "quiet", "silent")
    )
    bench.invariant(~quiet & ~silent)
    places = [Value.cast(port.place) for port in ports]
    bench.invariant(second == (places[1] < places[0]))
    bench.invariant(same == (ports[0].place.time == ports[1].place.time))
    news = []
    for n, (port, source, queue) in enumerate(zip(ports, sources, queues, strict=True)):
        contents = port_states(bench, port, n)
        counts(bench, contents, source, queue, identity)
        progress(bench, port, contents, source)
        news.append(bench.inside(port, "news"))
    told(bench, ports, news, second, same, leaves.reached)
    bench.invariant(last[1:] <= leaves.reached)
    bench.invariant(~last[0] | ports[0].place.ends | (ports[0].place.time > last[1:]))


def port_states(bench, port, number):
    """Claim the states of a port by itself; return what it holds: the head, then what is next."""
    held, head, ends, gone, joined = (
        bench.inside(port, name) for name in ("held", "head", "ends", "gone", "joined")
    )
    away = [bench.inside(port, name) for name in ("behind", "steady", "late", "settling")]
    bench.invariant(joined & ~gone & ~Cat(away).any())
    contents = [
        SimpleNamespace(there=one.there, word=one.word, barrier=one.word.kind == GateKind.BARRIER)
        for one in [
            SimpleNamespace(there=port.filled, word=head),
            *register_words(bench, held, head),
        ]
    ]
    for one in contents:
        bench.invariant(~one.there | one.barrier | (one.word.kind == GateKind.TUPLE))
        bench.invariant(~one.there | (one.word.source == number))
        bench.invariant(~one.there | ~one.barrier | (one.word.time == 0))
    bench.invariant(ends == (port.filled & contents[0].barrier))
    shows_mark = (head.kind == GateKind.WATERMARK) & ~head.late
    bench.invariant(port.filled | ~port.offers | shows_mark)
    return contents


def counts(bench, contents, source, queue, identity):
    """Claim that the bench has counted what is inside, and that the watched word is where it is."""
    bench.invariant(queue.level == sum(one.there for one in contents))
    barriers = [one.there & one.barrier for one in contents]
    bench.invariant(source.ended == sum(barriers))
    place, before = queue.before, C(0)
    for n, (one, barrier) in enumerate(zip(contents, barriers, strict=True)):
        rank = bench.wire(sum((other.there for other in contents[:n]), C(0)))
        here = queue.watching & one.there & (place == rank)
        bench.invariant(~here | (identity(one.word) == queue.watched))
        bench.invariant(~here | (source.ahead == before))
        before = bench.wire(before + barrier)


def progress(bench, port, contents, source):
    """Claim that times do not fall from the head to the latest word, and what is news of it."""
    mark, fresh = bench.inside(port, "mark"), bench.inside(port, "fresh")
    bench.invariant(mark == source.shown)
    head, *rest = contents
    bench.invariant(rest[0].there | (port.next_place.time == mark))
    latest, ended = head.word.time, head.there & head.barrier
    for one in rest:
        bench.invariant(~one.there | one.barrier | ended | (one.word.time >= latest))
        latest = bench.wire(Mux(one.there, one.word.time, latest))
        ended = Mux(one.there, one.barrier, ended)
    bench.invariant(Mux(fresh, mark > latest, mark == latest))


def told(bench, ports, news, second, same, reached):
    """Claim which watermarks the output knows, and that it has not passed a head."""
    for n, port in enumerate(ports):
        bench.invariant(port.place.ends | (port.place.time >= reached))
        bench.invariant(~port.filled | port.offers)
        bench.invariant(port.filled | ~news[n] | port.offers)
        chosen = ~port.filled & (second == n)
        bench.invariant(~chosen | (port.offers == (port.place.time > reached)))
    bench.invariant(ports[0].filled | ~second | news[0])
    known = ~ports[1].filled & ~second & ~news[1]
    bench.invariant(~known | (same & ~ports[0].place.ends))
    bench.invariant(~known | ~ports[1].offers | ports[0].offers)
