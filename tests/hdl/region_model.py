# SPDX-License-Identifier: Apache-2.0
"""What a region answers, from lists instead of rings; and a driver for one region."""

from hdl.parameters import JoinParameters, KeyField
from hdl.region import Region
from hdl.words.inputs import InputKind
from hdl.words.prepared import region_word
from hdl.words.results import ResultKind, node_result
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.cell_digests import with_digests
from tests.hdl.cells_model import Part, bucket_of, cells_of
from tests.hdl.input_words import (
    control_word,
    integer,
    mirrored_word,
    region_values,
    tuple_word,
)
from tests.hdl.stream_bench import StreamBench

__all__ = [
    "HIGH", "LOW", "Model", "as_tuple", "drive", "feed", "region_parameters",
    "sorted_groups", "within",
]  # fmt: skip

LOW, HIGH = -2, 1


def region_parameters(**changes):
    """Parameters of a small accelerator."""
    values = {"keys": (KeyField(name="x", bits=6),), "sub_window": 6, "probe_bits": 4, **changes}
    return JoinParameters.of(**values)


def within(r, s):
    """The band of these tests."""
    return LOW <= r - s <= HIGH


class Model:
    """A region whose probes are of ``probe_side``, and the words that it is sent.

    ``words`` are as the ingress sends them: both regions of a core get the same. A star follows
    every ``groups``-th group.
    """

    def __init__(
        self, parameters, probe_side, position, size, *, matches=within, parts=None, groups=1,
        cells=((0, 2),),
    ):  # fmt: skip
        self.parameters = parameters
        self.probe_side = probe_side
        self.position = position
        self.size = size
        self.matches = matches
        self.parts = parts or (Part(),)
        self.cells = cells
        self.window = []  # (local number, key), None for tuples that other cores store
        self.seen = 0
        self.group = []
        self.groups = groups
        self.unstarred = []  # probes of each group since the last star
        self.comparisons = 0
        self.words = []
        self.answers = []
        if parameters.engine.kind == "index" and parameters.predicate.kind == "band":
            for n, part in enumerate(self.parts):
                self.send(control_word("COORDINATE", n, part.value(parameters)))
        self.send(control_word("WINDOW", 1 - probe_side, size))

    @property
    def full(self):
        """Whether the next stored tuple displaces the oldest one of a count-based window."""
        return len(self.window) == self.size

    def send(self, word, **flags):
        """One word more."""
        bounds = {"x": (LOW, HIGH)}
        values = region_values(self.parameters, word, bounds=bounds, **flags)
        if self.parameters.engine.kind == "index" and word["kind"] != InputKind.CONTROL:
            prepared = values["body"]["tuple"]
            key = word["body"]["tuple"]["key"]
            prepared["bucket"] = bucket_of(self.parameters, self.parts, key)
            if self.parameters.predicate.kind == "band":
                prepared["cells"] = cells_of(self.parameters, self.parts, prepared["criterion"])
        banded = self.parameters.predicate.kind == "band"
        if banded and self.parameters.engine.digest_bits and word["kind"] != InputKind.CONTROL:
            body = values["body"]
            body["tuple"] = with_digests(self.parameters, self.cells, body["tuple"])
        self.words.append(values)

    def tuple(self, side, key):
        """Store or probe; close the group when it is full."""
        bit = 1 << self.probe_side
        close = 0
        if side == self.probe_side:
            self.group.append((key, [entry for entry in self.window if entry]))
            close = bit if len(self.group) == self.parameters.engine.probes else 0
        star = close and len(self.unstarred) + 1 >= self.groups
        cores = self.parameters.cores
        turns = {
            "storing": [self.seen % cores] * 2,
            "leaving": [(self.seen - self.size) % cores] * 2,
            "leaves": self.full * (1 << (1 - self.probe_side)),
        }
        word = tuple_word(side, {"x": key})
        self.send(word, close=close, star=close if star else 0, turns=turns)
        if close:
            self.close(star=star)
        if side != self.probe_side:
            mine = self.seen % self.parameters.cores == self.position
            self.window.append((self.seen // self.parameters.cores, key) if mine else None)
            self.window = self.window[-self.size :]
            self.seen += 1

    def flush(self):
        """End the open group."""
        star = 3 if self.group or self.unstarred else 0
        self.send(control_word("FLUSH"), close=3, star=star)
        self.close(star=bool(star))
        self.answers.append((ResultKind.MARK,))

    def begin(self, op):
        """Begin a new window of the same size (``WINDOW``) or empty it (``CLEAR``)."""
        star = 3 if self.group or self.unstarred else 0
        self.send(control_word(op, 1 - self.probe_side, self.size), close=3, star=star)
        self.close(star=bool(star))
        if op == "CLEAR":
            self.answers.append((ResultKind.MARK,))
        self.window, self.seen = [], 0

    def close(self, *, star):
        """Answer the group: by stored tuple, then by probe."""
        lanes, rows = self.parameters.engine.lanes, self.parameters.ring_rows
        pairs = []
        for n, (key, window) in enumerate(self.group):
            self.comparisons += len(window)
            for local, stored in window:
                if self.matches(*((stored, key) if self.probe_side else (key, stored))):
                    pairs.append((local, sum(self.unstarred) + n))
        self.answers += [
            (ResultKind.PAIR, n, local % lanes, local // lanes % rows) for local, n in sorted(pairs)
        ]
        if self.group:
            self.unstarred.append(len(self.group))
        if star:
            self.answers.append((ResultKind.STAR,))
            self.unstarred = []
        self.group = []

    def integers(self):
        """The words as this region gets them."""
        words = map(mirrored_word, self.words) if self.probe_side else self.words
        return [integer(region_word(self.parameters), word) for word in words]


def feed(model, events):
    """Give events to a model; end a group before the slack is used up, as the ingress does."""
    stored = 0
    for event in events:
        if event == "FLUSH":
            model.flush()
        elif event in ("WINDOW", "CLEAR"):
            model.begin(event)
        else:
            model.tuple(*event)
        stored = stored + 1 if event[0] == 1 - model.probe_side and model.group else 0
        if stored == model.parameters.cores * model.parameters.slack:
            model.flush()
            stored = 0
    model.flush()


def sorted_groups(answers):
    """Answers with the pairs of every group in order, as an index gives them in any."""
    groups = [[]]
    for answer in answers:
        groups[-1].append(answer)
        if answer[0] != ResultKind.PAIR:
            groups.append([])
    return [answer for group in groups for answer in sorted(group[:-1]) + group[-1:]]


def as_tuple(word):
    """What a word says."""
    if word.kind == ResultKind.PAIR:
        pair = word.body.pair
        return word.kind, pair.probe, pair.lane, pair.row
    return (word.kind,)


def drive(
    model, *, stalls=0.0, seed=0, stamps=None, activity=None, begin=0, memory=None, deadline=30_000
):
    """Send a model's words to a region; return what its results say, taken from ``begin`` on.

    ``activity``, a dictionary, gets the sums of the region's activity. ``memory``, a function, gets
    the port of the region's external memory and returns what is behind it.
    """
    parameters = model.parameters
    dut = Region(parameters, probe_side=model.probe_side)
    bench = StreamBench(dut, deadline=deadline, stalls=stalls, seed=seed)

    async def place(ctx):
        ctx.set(dut.position, model.position)

    async def watch(ctx):
        names = ("comparisons", "busy", "stalled")
        activity.update(dict.fromkeys(names, 0))
        while True:
            values = await ctx.tick().sample(*(dut.activity[name] for name in names))
            for name, value in zip(names, values[2:], strict=True):
                activity[name] += value

    bench.simulator.add_testbench(place, background=True)
    if parameters.engine.has_memory:
        (memory or AxiMemory)(dut.m_axi).attach(bench.simulator)
    if activity is not None:
        bench.simulator.add_testbench(watch, background=True)
    bench.source(dut.words, model.integers(), stamps=stamps and stamps[0])
    received = bench.sink(dut.results, len(model.answers), stamps=stamps and stamps[1], begin=begin)
    bench.run(extra_cycles=40)
    return [as_tuple(node_result(parameters, 0).from_bits(word)) for word in received]
