# SPDX-License-Identifier: Apache-2.0
"""Parts of fields in a bucket's number, against plain Python: none takes another's bits."""

from itertools import combinations
import random

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
import pytest

from hdl.index.cells import elaborate_disjoint, wanted_bits, wanted_layout
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import Control, coordinate_layout
from hdl.words.prepared import region_word
from tests.halves import half
from tests.hdl.cells_model import Part, granted
from tests.hdl.cycles import each_cycle
from tests.hdl.input_words import control_word, integer, region_input, tuple_word
from tests.hdl.word_model import outcomes


class DisjointParts(wiring.Component):
    """A word, what it wants a cycle later, and the word as it goes on then."""

    def __init__(self, parameters):
        self.parameters = parameters
        size = region_word(parameters).size
        super().__init__({"i": In(size), "transfer": In(1), "o": Out(size)})

    def elaborate(self, platform):
        m = Module()
        arriving, leaving = (
            data.View(region_word(self.parameters), word) for word in (self.i, self.o)
        )
        word = Signal.like(self.i)
        wanted = Signal(wanted_layout(self.parameters))
        m.d.sync += [
            word.eq(self.i),
            wanted.as_value().eq(wanted_bits(self.parameters, arriving)),
        ]
        m.d.comb += self.o.eq(word)
        elaborate_disjoint(m, self.parameters, wanted, leaving, self.transfer)
        return m


def index_parameters(fields, bits, **changes):
    """An index with so many key fields, and buckets whose numbers have so many bits."""
    keys = tuple(KeyField(name=f"k{n}", bits=3) for n in range(fields))
    return JoinParameters.of(
        cores=1, sub_window=5, keys=keys, engine="index", bucket_bits=bits, **changes
    )


def any_part(parameters, generator):
    """A part such as a control word can hold, though it may fit nowhere."""
    most = (1 << parameters.engine.bucket_bits.bit_length()) - 1
    if generator.random() < 0.6:  # a small one, so that some stand side by side
        width, place = generator.randrange(3), generator.randrange(parameters.engine.bucket_bits)
    else:
        width, place = generator.randint(0, most), generator.randint(0, most)
    return Part(
        shift=generator.randrange(4), width=width, place=place,
        hashed=bool(generator.randrange(2)), seed=generator.getrandbits(32),
    )  # fmt: skip


def coordinate(parameters, n, part):
    """The word that asks for a part of the ``n``-th field, as an integer."""
    word = control_word("COORDINATE", n, part.value(parameters))
    return region_input(parameters, word)


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8])
def test_a_part_wants_its_bits_and_fits_if_it_ends_within_the_number(bits):
    parameters = index_parameters(2, bits)
    most = (1 << bits.bit_length()) - 1
    parts = [
        Part(width=width, place=place) for width in range(most + 1) for place in range(most + 1)
    ]

    def wanted(_, word):
        return {"wanted": wanted_bits(parameters, word)}

    words = [coordinate(parameters, 1, part) for part in parts]
    found = outcomes(region_word(parameters), wanted, words)
    for part, outcome in zip(parts, found, strict=True):
        taken = range(part.place, part.place + part.width)
        expected = {
            "bits": sum(1 << bit for bit in taken if bit < bits),
            "fits": part.place + part.width <= bits,
        }
        assert outcome["wanted"] == integer(wanted_layout(parameters), expected)


@pytest.mark.parametrize(
    ("fields", "bits", "gaps"),
    half([(1, 1), (2, 1), (1, 3), (3, 2), (2, 3), (5, 8)], [0.0, 0.5], of=3),
)
def test_a_field_gets_the_bits_that_no_other_field_has_or_none(fields, bits, gaps):
    """There is a word in every cycle, or in some; what is not a word leaves no trace."""
    parameters = index_parameters(fields, bits)
    dut = DisjointParts(parameters)
    generator = random.Random(f"{fields} {bits} {gaps}")
    parts = [Part()] * fields
    refused = kept = 0

    def next_word():
        """A word as it comes: its field and part, if it is COORDINATE, and its bits."""
        what = generator.random()
        if what < 0.1:
            key = {field.name: generator.randrange(-4, 4) for field in parameters.keys}
            return None, None, region_input(parameters, tuple_word(0, key))
        part = any_part(parameters, generator)
        if what < 0.2:  # an operation whose value happens to look like a part
            op = generator.choice(["FLUSH", "CLEAR", "PRECISION", "DISTINCT"])
            word = control_word(op, generator.randrange(2), part.value(parameters))
            return None, None, region_input(parameters, word)
        n = generator.randrange(fields)
        return n, part, coordinate(parameters, n, part)

    def steps(put, get):
        nonlocal refused, kept
        n = part = expected = None
        for _ in range(250):
            transfer = generator.random() >= gaps and expected is not None
            following = next_word()
            put(i=following[2], transfer=transfer)
            if transfer:
                if n is not None:
                    given = granted(parameters, parts, n, part)
                    expected = coordinate(parameters, n, given)
                    refused += given != part
                    kept += given == part and part.width > 0
                    parts[n] = given
                assert get("o") == expected
                assert disjoint(parts)
            n, part, expected = following
            yield

    def disjoint(parts):
        taken = [set(range(part.place, part.place + part.width)) for part in parts]
        within = all(bit < bits for each in taken for bit in each)
        return within and all(a.isdisjoint(b) for a, b in combinations(taken, 2))

    each_cycle(dut, steps)
    assert refused > 10
    assert kept > 10


def test_a_field_may_move_within_its_own_bits_and_gives_up_what_it_had_when_refused():
    parameters = index_parameters(2, 4)
    dut = DisjointParts(parameters)
    layout = coordinate_layout(parameters)
    wishes = [
        (0, (2, 0), 2),  # field, (width, place), width that it gets
        (1, (3, 1), 0),  # overlaps field 0
        (0, (2, 1), 2),  # moves by one bit
        (1, (1, 0), 1),  # which is free now
        (0, (3, 2), 0),  # reaches beyond the number: field 0 has nothing
        (1, (4, 0), 4),
    ]

    def steps(put, get):
        for n, (width, place), gets in wishes:
            word = coordinate(parameters, n, Part(width=width, place=place))
            put(i=word, transfer=0)
            yield
            put(transfer=1)
            control = region_word(parameters).from_bits(get("o")).body.control
            assert control.op == Control.COORDINATE
            part = layout.from_bits(control.value & ((1 << layout.size) - 1))
            assert part.width == gets
            yield

    each_cycle(dut, steps)
