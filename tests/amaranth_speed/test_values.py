# SPDX-License-Identifier: Apache-2.0
from amaranth.hdl import Cat, Format, Mux, Signal, Value, signed
from amaranth.hdl._ast import Operator
from amaranth.lib import data

from tests.amaranth_speed.values import keep_shapes, postpone_formats, recognize_values

PAIR = data.StructLayout({"a": 3, "b": data.ArrayLayout(signed(2), 2)})


def expressions():
    a, b, c = Signal(3), Signal(signed(5)), Signal(PAIR)
    sums = [a + b, a - a, a * b, ~a, -b, a == b, a & b, a << a[:2], b >> a[:2], b.as_unsigned()]
    return [a, b, *sums, b[1:3], a.bit_select(b[:2], 2), Cat(a, b, c), Mux(a, b, a), c.b[0]]


def test_shapes_are_those_of_amaranth(own_amaranth):
    with own_amaranth():
        expected = [value.shape() for value in map(Value.cast, expressions())]
    for _ in range(2):
        assert [value.shape() for value in map(Value.cast, expressions())] == expected
    assert expected[2] == signed(6)


def test_a_shape_is_computed_once(monkeypatch):
    computed = []
    compute = Operator.shape

    def shape(self):
        computed.append(self)
        return compute(self)

    monkeypatch.setattr(Operator, "shape", shape)
    keep_shapes(monkeypatch)
    total = Signal(3) + Signal(4)
    assert [len(total), len(total), total.shape().width] == [5, 5, 5]
    assert len(computed) == 1


def test_values_are_cast_to_themselves_and_others_as_before(monkeypatch):
    recognize_values(monkeypatch)
    one, pair = Signal(3), Signal(PAIR)
    for _ in range(2):
        assert Value.cast(one) is one
        assert Value.cast(pair) is pair.as_value()
        assert Value.cast(True).value == 1


def test_a_format_is_computed_when_it_is_read(monkeypatch):
    computed = []
    compute = data.Layout.format

    def format_of_layout(self, value, format_spec):
        computed.append(self)
        return compute(self, value, format_spec)

    monkeypatch.setattr(data.Layout, "format", format_of_layout)
    postpone_formats(monkeypatch)
    signal = Signal(PAIR)
    assert not computed
    for _ in range(2):
        shown = signal.as_value()._format
        assert isinstance(shown, Format.Struct)
        assert list(shown._fields) == ["a", "b"]
    assert computed == [PAIR]
    assert isinstance(PAIR.format(signal, ""), Format.Struct)
