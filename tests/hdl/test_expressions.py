# SPDX-License-Identifier: Apache-2.0

from amaranth import *
from amaranth.sim import Simulator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
import pytest

from hdl.expressions import FUNCTIONS, OPERATIONS, lower, names_of
from host import expressions
from host.expressions import Expression, evaluate
from tests.host.operators.texts import RANGES, texts, values


def shape(bits, signed):
    return Shape(bits, signed)


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    st.lists(texts().map(lambda text: Expression(text)), min_size=20, max_size=20),
    st.lists(values(), min_size=12, max_size=12),
)
def test_circuit_computes_what_the_host_does(expressions, rows):
    """Many expressions are in one circuit, and each is read for all rows."""
    fields = {name: Signal(shape(*at)) for name, at in RANGES.items()}
    results = [lower(expression.text, fields) for expression in expressions]
    m = Module()
    outputs = [Signal.like(result, name=f"o{at}") for at, result in enumerate(results)]
    m.d.comb += [output.eq(result) for output, result in zip(outputs, results, strict=True)]

    async def bench(ctx):
        for row in rows:
            for name, value in row.items():
                ctx.set(fields[name], value)
            await ctx.delay(1e-9)
            for expression, output in zip(expressions, outputs, strict=True):
                assert ctx.get(output) == evaluate(expression, row), (expression.text, row)

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()


def test_both_sides_have_the_same_language():
    assert set(OPERATIONS) == set(expressions.OPERATIONS)
    assert set(FUNCTIONS) == set(expressions.FUNCTIONS)


@given(texts())
def test_both_sides_read_the_same_names(text):
    expression = Expression(text)
    assert names_of(expression.text) == expression.names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x and y", "'x and y' has 'x', which is no condition; compare it"),
        ("f(x)", "has 'f(x)', which is not in the language"),
        ("x / 2", "has 'x / 2', which is not in the language"),
        ("x in y", "has 'x in y', which is not in the language"),
        ("1.5", "has '1.5', which is not in the language"),
        ("not x", "'not x' has 'x', which is no condition; compare it"),
        ("z + 1", "'z + 1' reads 'z'; it may read x, y"),
        ("x +", "is no Python expression (invalid syntax)"),
    ],
)
def test_what_is_not_in_the_language_is_refused(text, message):
    with pytest.raises(ValueError) as caught:
        lower(text, {"x": Signal(8), "y": Signal(8)})
    assert message in str(caught.value)
