# SPDX-License-Identifier: Apache-2.0
"""Words of a ScaleGate for tests: random sources, and constants of the layouts."""

from hdl.scalegate.words import GateKind
from sim.model.scale_gate import GateWord, GateWordKind, ScaleGateReference

__all__ = [
    "barrier",
    "expected",
    "leave",
    "random_source",
    "send",
    "tuple_at",
    "watermark",
    "words",
]


def tuple_at(time, body=0):
    return GateWord(GateWordKind.TUPLE, time, body)


def watermark(time):
    return GateWord(GateWordKind.WATERMARK, time)


def leave():
    return GateWord(GateWordKind.LEAVE)


def barrier(body=0):
    return GateWord(GateWordKind.BARRIER, body=body)


def random_source(random, *, length, time_bits, body_bits, backward=0.0, epochs=1):
    """Return the words of a source: tuples and watermarks, barriers between, LEAVE at the end."""
    limit = (1 << time_bits) - 1
    found = []
    for epoch in range(epochs):
        time = random.randrange(3)
        for _ in range(random.randrange(length + 1)):
            step = -random.randrange(4) if random.random() < backward else random.randrange(4)
            time = min(max(0, time + step), limit)
            body = random.getrandbits(body_bits)
            found.append(watermark(time) if random.random() < 0.2 else tuple_at(time, body))
        found.append(leave() if epoch == epochs - 1 else barrier(epoch))
    return found


def send(layout, word):
    """Return a word as the constant that a source sends."""
    return layout.const({"kind": GateKind(word.kind), "time": word.time, "body": word.body})


def words(layout, received):
    """Return received constants as words, and the watermarks among them by their places."""
    found = []
    for bits in received:
        word = layout.from_bits(bits)
        kind = GateWordKind(word.kind.value)
        if kind is GateWordKind.TUPLE:
            found.append(
                GateWord(kind, word.time, word.body, source=word.source, late=bool(word.late))
            )
        else:
            is_watermark = kind is GateWordKind.WATERMARK
            body = word.body if kind is GateWordKind.BARRIER else 0
            found.append(GateWord(kind, word.time if is_watermark else 0, body))
    return found


def expected(sources):
    """Return what a ScaleGate makes of sources that all leave at the end."""
    reference = ScaleGateReference(len(sources))
    return [
        ready
        for number, source in enumerate(sources)
        for word in source
        for ready in reference.push(number, word)
    ]
