# SPDX-License-Identifier: Apache-2.0
"""Which modules are mutated, which tests have to notice, and which mutants nobody can notice."""

from dataclasses import dataclass, field

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """A module and the tests that its mutants are run against.

    Parameters
    ----------
    why : str
        What of an answer the module decides.
    tests : tuple of str
        Test files, each a matter of seconds.
    equivalent : dict of str to str
        Statements of mutants that no answer can tell from the original, each with the reason. A
        statement may be cut short where what is left is clear.
    left_out : tuple of str
        Functions that only Spark can run, as they make expressions of its columns or read its
        frames. Their mutants are not run.
    """

    why: str
    tests: tuple[str, ...]
    equivalent: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


#: Reasons that several modules share.
QUICKER = "when the quicker way is taken, and how far: the other one has the same answer"
LEFT = "the left side is what is searched by default"
FASTER = "a shorter way for common cases: the longer one has the same answer"
NARROWER = "more candidates: each is compared and looked for in the window anyway"
BLOCKS = "blocks of another size, which have the same answer together"
ANY_ORDER = "in which order candidates are searched: each order has the same answer"
EITHER = "a pass ends where either side has no rows, whatever the other one has"
NAMED_BEFORE = "the side is named in errors that were raised before"
ARROW_TYPES = "Arrow gives columns the types of the schema"
ARROW_64 = "numbers of 64 bits are what Arrow makes of them by default"
NONE_THERE = "places of no tuples, whatever numbers they would be"
FALSE = "None is as good as False"
STRICT = "the lengths are equal; `strict` would only tell if they were not"

TARGETS = {
    "host/protocol/storage.py": Target(
        "which tuple a place in the hardware means",
        ("tests/host/protocol/test_storage.py",),
        {
            "if self.cores > 1 or True": FASTER,
            "if self.cores >= 1": FASTER,
            "if self.lanes > 1 or True": FASTER,
            "if self.lanes >= 1": FASTER,
            "& self.slots - 1 and False": FASTER,
            "if not self.slots | self.slots - 1": FASTER,
            "if not self.slots & self.slots - 2": "zero for powers of two only",
            "if divisor | divisor - 1": FASTER,
            "if divisor & divisor - 2": "zero for powers of two only, and all but one",
            "if divisor > 1 or True": "a shift by no bits",
            "if divisor >= 1": "a shift by no bits",
        },
    ),
    "host/reference/window.py": Target(
        "which tuples a window holds",
        ("tests/host/reference/test_window.py",),
        {"np.searchsorted(stored, oldest).astype": LEFT},
    ),
    "host/protocol/punctuation.py": Target(
        "where groups end and stars stand",
        ("tests/host/protocol/test_punctuation.py",),
        {
            "alone, patience =": QUICKER,
            "if alone:": QUICKER,
            "alone = 1": QUICKER,
            "alone += 1": QUICKER,
            "alone -= 2": QUICKER,
            "patience = 2": QUICKER,
            "limits[:int(np.searchsorted(limits, left))]": QUICKER,
            "np.zeros(2, np.int64), limits[:-1]": QUICKER,
            "in_time = ends": QUICKER,
            "min(self.probes, self.period) - 2": QUICKER,
            "min(self.probes, self.period) + 3": QUICKER,
            "int(np.argmin(None))": QUICKER,
            "self.others = ": "set to zero where a group begins, before it is read",
            "np.full(len(ends), side, None)": "NumPy makes 64-bit numbers of sides unasked",
            "np.full(len(ends), side)": "NumPy makes 64-bit numbers of sides unasked",
            "reshape(-2, 3)": "NumPy takes any negative number for the one that is not known",
            "full_at <= late_at": "tuples of two sides never stand in one place",
            "zip(*closed": STRICT,
            "stored / cores": "of tuples of one core, both quotients have the same order",
            "kind='STABLE'": "NumPy takes the name in any case",
            "np.arange(len(ends[side]) + 2)": "one limit more than anybody reads",
            "strict=None": STRICT,
            "limits[1:]))": STRICT,
            "limits[1:], strict=True": "nobody asks for more than there are groups",
            "zip(part.side, part.probes, part.star)": STRICT,
            "part.star, strict=False)": STRICT,
        },
    ),
    "host/reference/join.py": Target(
        "the oracle itself",
        ("tests/host/reference/test_reference.py",),
        {
            "reach = base +": BLOCKS,
            "np.searchsorted(stops, reach": BLOCKS,
            "top = None": NARROWER,
            "candidates(None, side": NARROWER,
            "np.where(None, first": NARROWER,
            "least = int((high + low).sum())": ANY_ORDER,
            "if least <": ANY_ORDER,
            "if name in span": ANY_ORDER,
            "candidates: break": ANY_ORDER,
            "total = int((last + first).sum())": ANY_ORDER,
            "if total <= least": ANY_ORDER,
            "np.argsort(values": "the order of equal values is not looked at",
            "np.searchsorted(ordered, lowest).astype": LEFT,
            "begin, done = ": BLOCKS,
            "end = max(begin + 1, int(np.searchsorted(total, done": BLOCKS,
            "np.arange(len(mine)": "64-bit numbers are what NumPy counts with by default",
        },
    ),
    "host/session/decoder.py": Target(
        "which rows a result of the hardware means",
        ("tests/host/session/test_decoder.py", "tests/host/session/test_expected_stars.py"),
        {
            "np.zeros(0, None)": NONE_THERE,
            "np.zeros(0))": NONE_THERE,
            "log.count or log.has(None)": "numbers that differ from rows once do so ever after",
            "log.count or log.has('": "numbers that differ from rows once do so ever after",
            "np.ones(len(at)": "a column of booleans is there, and takes them as such",
            "kinds[:1]": "no result is left to be decoded",
            "rare[:1]": "no result is left to be decoded",
            "reduce(results.overflow)": "NumPy begins with zero by itself",
            "if flags or True": "NumPy takes all of nothing for true",
        },
    ),
    "host/reference/predicate.py": Target(
        "which pairs match, and which values are near enough to look at",
        ("tests/host/reference/test_predicate.py",),
        {
            "sign * below >= 0": "a shift by nothing leaves no place",
            "sign * above <= 0": "a shift by nothing leaves no place",
            "sign * above < 1": "a shift by nothing leaves no place",
            "zeros_like(None)": "one number for all values",
            "full_like(None": "one number for all values",
            "none = beyond": "nothing has been beyond before",
            "np.asarray(r), None": "a side other than S",
            "reference.rpartition": "names of neither kind can be imported",
        },
    ),
    "host/protocol/buckets.py": Target(
        "in which buckets of an index the partners of a tuple lie",
        ("tests/host/protocol/test_buckets.py",),
        {
            "strict=None": STRICT,
            "strict=False": STRICT,
            "zip(names, seeds(choice, len(names))))": STRICT,
        },
    ),
    "host/protocol/bit_fields.py": Target(
        "where the bits of a field stand in a word",
        ("tests/host/protocol/test_bit_fields.py",),
        {
            "array.astype(": "numbers of 64 bits either way, modulo a power of two",
            "place.bits < 65": "a mask of all bits",
            "place.bits <= 64": "a mask of all bits",
            "place.bits < 64 or True": "a mask of all bits",
            "if shift or True": "a shift by no bits",
            "dtype=None": "NumPy makes numbers of 64 bits unasked",
        },
    ),
    "host/protocol/pairing.py": Target(
        "which tuples share a word",
        ("tests/host/protocol/test_pairing.py",),
        {
            "before = np.cumsum(second": "numbers of another width",
            "sides = np.zeros(count": "numbers of another type, compared with one another",
            "sides[places[Side.S]] = 2": "any number that differs from that of R",
        },
    ),
    "host/protocol/result_words.py": Target(
        "what a result word says",
        ("tests/host/protocol/test_codec.py",),
        {
            "get('NONE'": "read of words that hold two results, whose manifests have it",
            "astype(None)": "numbers of another type, compared with one another",
            "strict=None": STRICT,
            "strict=False": STRICT,
            "if levels": FASTER,
        },
    ),
    "spark_offload/partitioning/placement.py": Target(
        "what rows are partitioned by",
        ("tests/spark_offload/partitioning/test_placement.py",),
        {
            "strict=None": STRICT,
            "strict=False": STRICT,
            "_reaches(query))": STRICT,
            "size = query.window.size": "where ranges are cut, a window by time has a width",
        },
    ),
    "spark_offload/partitioning/ranges.py": Target(
        "where ranges of time begin",
        ("tests/spark_offload/test_order_profile.py",),
        {
            "if number < self.least": "at the least time the longer way comes to zero as well",
        },
        left_out=("profile_order", "quantiles"),
    ),
    "spark_offload/partitioning/halos.py": Target(
        "how far before a range of time rows are sent along",
        ("tests/spark_offload/partitioning/test_halos.py",),
        {
            "place in range(len(starts) + 1)": "no row stands before the first range",
            "range(1, len(starts) + 2)": "the time of one more row, which nobody reads",
            "(0, 1))[0]": "a pair of which the first number is read",
            "strict=None": STRICT,
            "strict=False": STRICT,
            "_last_before(census, side, starts))]": STRICT,
            "zip(Side, held)": STRICT,
            "zip(*rows)": STRICT,
            "zip(marks, found)": STRICT,
        },
        left_out=("in_ranges", "census", "times_at", "sent"),
    ),
    "spark_offload/task/rows.py": Target(
        "which halo rows a window holds, and whether they are all there; "
        "in which partition a row comes alone; "
        "what a task reads of its partition; "
        "whether an input is in order",
        (
            "tests/spark_offload/task/test_halo_check.py",
            "tests/spark_offload/task/test_departing_rows.py",
            "tests/spark_offload/task/test_partition_rows.py",
            "tests/spark_offload/task/test_side_check.py",
        ),
        {
            "self._complete = None": FALSE,
            "zero_copy_only=None": FALSE,
            "] = None": FALSE,
            "kept.all() and False": FASTER,
            "_require_all: self._complete = False": FASTER,
            "(left, right), strict=": STRICT,
            "zip(PAYLOAD, (left, right))": STRICT,
            "(0, middle), strict=": STRICT,
            "(0, middle))": STRICT,
            "types[:len(left)], strict=None": STRICT,
            "types[:len(left)], strict=False": STRICT,
            "types[:len(left)]))": STRICT,
            "middle + len(right)], strict=None": STRICT,
            "middle + len(right)], strict=False": STRICT,
            "middle + len(right)]))": STRICT,
            "pa.scalar(side": "Arrow compares whole numbers of any width",
            "numbers[0] <= self._last[0]": "no two rows of a side have one number",
            "numbers[1:] <= numbers[:-1]": "no two rows of a side have one number",
            "places, strict=": STRICT,
            "zip(self.columns, places)": STRICT,
        },
    ),
    "spark_offload/task/handover.py": Target(
        "how many rows a window holds; "
        "which rows software joins where the window outgrows the device",
        (
            "tests/spark_offload/task/test_window_size.py",
            "tests/spark_offload/test_handover_rows.py",
        ),
        {
            "sides != side": "the other side first: the greater of both counts",
            "zero_copy_only=": "numbers without nulls are not copied",
            "self._last = None": "set with the first row, before it is read",
            "self._last = 1": "set with the first row, before it is read",
            "cut is None and False": FASTER,
            "zero_copy_only=None": FALSE,
            "WindowGauge(None, width": "a name for an error that the handover tells by itself",
            "| None = ''": "set before it is read",
            "at[full] <= found": "rows of two sides never stand in one place",
            "np.ones(batch.num_rows": ARROW_TYPES,
            "own = _flags": "the first thing that is added to a column of false",
        },
    ),
    "spark_offload/stream/state.py": Target(
        "which rows of a stream are kept, and when they leave; which kept rows have matched",
        ("tests/spark_offload/stream/test_window_state.py",),
        {
            "reshape(-2, 3)": "NumPy takes any negative number for the one that is not known",
            "span[1] / self._length": "whole numbers up to a quotient, or up to its whole part",
            "kind='STABLE'": "NumPy takes the name in any case",
            "strict=None": STRICT,
            "strict=False": STRICT,
            "zip(found.tolist(), begins.tolist(), ends)": STRICT,
            "save: timer = None": "neither is a timer",
            "np.array(table": "64-bit numbers are what NumPy makes of them by default",
            "save: self._timer = None": "the object is made anew for every call",
            "whole_table(self._read(place), None)": "the rows that are read have the schema",
            "self._bits.pop(place)": "the bits of a slice are read before it goes",
            "self._bits.pop(None, None)": "a slice that begins again has no bits from before",
        },
    ),
    "spark_offload/stream/passes.py": Target(
        "which pairs of a micro-batch are new",
        ("tests/spark_offload/stream/test_passes.py",),
        {
            "if not lefts.num_rows and": FASTER,
            "strict=None": STRICT,
            "strict=False": STRICT,
            "(left_rows, right_rows), join.pairs)": STRICT,
            "return (table.slice(": EITHER,
            "(times >= span[0]) | (times": "rows further away are compared, and match nothing",
            "near.all() and False": FASTER,
            "near.all() or True": "rows further away are compared, and match nothing",
        },
    ),
    "spark_offload/stream/packing.py": Target(
        "which rows of a stream meet in a group",
        ("tests/spark_offload/stream/test_packing.py",),
        {
            "if not before - count": "fewer rows are gathered than were packed at any time before",
            "(before - count, 0, [])": "not zero either, and never less than what is gathered",
            "*map(str": "columns are found by their places",
            "kind='STABLE'": "NumPy takes the name in any case",
            "len(task.groups) >= 1": FASTER,
            "strict=None": STRICT,
            "strict=False": STRICT,
            "zip(begins.tolist(), ends)": STRICT,
            "pa.array(groups, None)": ARROW_TYPES,
            "pa.array(groups)": ARROW_TYPES,
            "len(groups), None)": ARROW_TYPES,
            "[side] * len(groups))": ARROW_TYPES,
            "pa.array(blobs, None)": ARROW_TYPES,
            "pa.array(blobs)": ARROW_TYPES,
            "zero_copy_only=None": FALSE,
        },
    ),
    "spark_offload/stream/groups.py": Target(
        "in which partition of the state a group lies",
        ("tests/spark_offload/stream/test_groups.py",),
        {"astype(None)": "as exact, since the numbers are of 32 bits"},
    ),
    "spark_offload/stream/task.py": Target(
        "what a row that comes alone looks like; whether the kept rows answer the query",
        (
            "tests/spark_offload/stream/test_lone_rows.py",
            "tests/spark_offload/stream/test_question.py",
        ),
        {
            "pa.nulls(rows.num_rows": ARROW_TYPES,
            "side == LEFT and False": ARROW_TYPES,
        },
    ),
    "spark_offload/stream/processor.py": Target(
        "what happens to a group in a micro-batch",
        ("tests/spark_offload/stream/test_processor.py",),
        {
            "strict=None": STRICT,
            "strict=False": STRICT,
            "zip(frame['side'], frame['rows'])": STRICT,
            "watermark_ms <= 0 and (not table.num_rows)": "all rows of none pass",
            "watermark_ms * 1000, None)": "Arrow compares whole numbers of any width",
            "pa.scalar(watermark_ms * 1000)": "Arrow compares whole numbers of any width",
            "time.perf_counter() + started": "how long the group took, which is no answer",
        },
    ),
}
