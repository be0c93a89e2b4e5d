# SPDX-License-Identifier: Apache-2.0
"""The words that a coordinator has to send, lane by lane, and the marks it has to answer."""

from dataclasses import dataclass, field

from bench.handshake.layouts import LaneKind, with_criterion
from hdl.words.inputs import InputKind
from tests.hdl.input_words import criterion_of, stored_key

__all__ = ["LaneModel", "LaneWord"]

R, S = 0, 1


@dataclass(frozen=True)
class LaneWord:
    """A word of a lane; ``content`` is what it carries, as the layout of the lane has it."""

    kind: LaneKind
    restart: int = 0
    content: dict = field(default_factory=dict)


class LaneModel:
    """A coordinator, word by word.

    Attributes
    ----------
    lanes : list of two lists of LaneWord
    marks : list of dict
        Faults of every mark that is answered.
    settled_before : list of int
        For every mark, the number of pairs of fences before it.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.handshake = not parameters.arrangement.expedited
        self.lanes, self.marks, self.settled_before = [[], []], [], []
        self._held = [[], []]  # the deadline of every tuple of a window
        self._windows = [("count", parameters.capacity)] * 2
        self._sent, self._overflow, self._fences = [0, 0], 0, 0

    def send(self, lane, kind, **values):
        """Send a word in a lane."""
        self.lanes[lane].append(LaneWord(kind, **values))

    def expire(self, side):
        """The oldest tuple of a side leaves its window, as the other side's lane says."""
        del self._held[side][0]
        self.send(1 - side, LaneKind.EXPIRE)

    def take(self, word, **flags):
        """Take an input word; ``flags`` are what the ingress says of it."""
        if word["kind"] == InputKind.CONTROL:
            self.control(word["body"]["control"], flags)
        else:
            self.tuple(word["kind"].value, word["body"]["tuple"])

    def is_due(self, side, own, time):
        """Whether the oldest tuple of a side leaves before one of side ``own``."""
        kind, size = self._windows[side]
        if kind == "time":
            return bool(self._held[side]) and self._held[side][0] < time
        return side == own and len(self._held[side]) == size

    def tuple(self, side, values):
        """Send a tuple behind those that leave; one without room is dropped."""
        for leaving in (R, S):
            while self.is_due(leaving, side, values["timestamp"]):
                self.expire(leaving)
        if len(self._held[side]) == self.parameters.capacity:
            self._overflow |= 1 << side
            return
        kind, size = self._windows[side]
        self._held[side].append(values["timestamp"] + size if kind == "time" else 0)
        key = stored_key(self.parameters, values["key"])
        content = {"body": {"tuple": {"key": key}}}
        if with_criterion(self.parameters):
            criterion = criterion_of(self.parameters, side, values["key"])
            content["body"]["tuple"]["criterion"] = criterion
        if not self.handshake:
            content |= {"homeless": 1, "before": self._sent[1 - side]}
        self.send(side, LaneKind.TUPLE, content=content)
        self._sent[side] += 1

    def control(self, control, flags):
        """Empty windows, send fences, then execute the word."""
        op, index = control["op"].name, control["index"]
        emptied = {R, S} if op == "CLEAR" or self.handshake else set()
        if op in ("WINDOW", "LIFESPAN"):
            emptied.add(index)
        for side in sorted(emptied):
            while self._held[side]:
                self.expire(side)
        for restart in range(1 + (op == "CLEAR")):
            self._fences += 1
            for lane in range(2):
                self.send(lane, LaneKind.FENCE, restart=restart)
        if op == "CLEAR":
            self._sent = [0, 0]
        if op.startswith("BOUND") and self.handshake and self.parameters.predicate.kind == "band":
            end, name = op.removeprefix("BOUND_").lower(), self.parameters.keys[index].name
            bound = {"bounds": {name: {end: 1}}, "value": control["value"]}
            self.send(R, LaneKind.BOUND, content={"body": {"bound": bound}})
        if op in ("CLEAR", "FLUSH", "PRECISION"):
            faults = {"overflow": self._overflow}
            faults |= {name: flags.get(name, 0) for name in ("disorder", "illegal")}
            self.marks.append(faults)
            self.settled_before.append(self._fences)
        if op == "CLEAR":
            self._overflow = 0
        if op in ("WINDOW", "LIFESPAN"):
            self._windows[index] = ("count" if op == "WINDOW" else "time", control["value"])
