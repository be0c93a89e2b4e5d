# SPDX-License-Identifier: Apache-2.0
"""Described operators on rows: whatever runs them gives what the reference operator gives."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from examples import quotes_of_orders, sessions
from host import UsageError, operate
from host.__main__ import main
from host.errors import ExpressionError, OrderError
from host.expressions import Expression, differences
from host.files.reading import read_table
from host.operators.operate import (
    OperatorColumns,
    OperatorEngine,
    OperatorQuery,
    OperatorStream,
    operate_tables,
    reference_rows,
)
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator
from tests.host.operators.brute_force import arrivals
from tests.host.operators.operators import ALL, EVERYTHING, FORWARD, JOIN, JOIN_AGGREGATE, KEYLESS

few = settings(max_examples=25)

#: The totals of each key so far, with every window.
RUNNING = WindowedOperator(
    name="running",
    size=6,
    advance=3,
    fields=[Field("item", 2, False), Field("price", 8)],
    keys=[Key("item")],
    instances="single",
    reductions=[Reduction("n", "count"), Reduction("total", "sum", "price")],
    slide="n < 6",
)
#: Keys of which a tuple has none, one or two; a pair comes once under each that both have.
KEYED_JOIN = WindowedOperator(
    name="keyed_join",
    size=7,
    advance=2,
    fields=[Field("a", 2, False), Field("b", 2, False)],
    right_fields=[Field("a", 2, False), Field("b", 2, False)],
    keys=[Key("a", when="a > 0"), Key("b", when="b < 3")],
    key_names=["key"],
    instances="single",
    match="l.a != r.b",
)
EVERY = (*ALL, sessions.OPERATOR, quotes_of_orders.OPERATOR, RUNNING, KEYED_JOIN)
every = pytest.mark.parametrize("operator", EVERY, ids=lambda operator: operator.name)


def tables_of(operator, rows):
    """Return (timestamp, input, fields) as a table for each input."""
    found = []
    for side, schema in enumerate(operator.schemas):
        own = [{"timestamp": time, **fields} for time, number, fields in rows if number == side]
        kinds = [("timestamp", pa.int64()), *((one.name, pa.int64()) for one in schema)]
        found.append(pa.Table.from_pylist(own, pa.schema(kinds)))
    return found


@every
@few
@given(data=st.data())
def test_software_gives_what_the_reference_gives(operator, data):
    rows = data.draw(arrivals(operator, most=25))
    tables = tables_of(operator, rows)
    size = data.draw(st.integers(1, 30))  # of the batches that come
    readers = [table.to_reader(max_chunksize=size) for table in tables]
    got = operate(readers[0], operator, *readers[1:])
    assert got.to_pylist() == reference_rows(tables, OperatorQuery(operator)).to_pylist()


@pytest.mark.few(4)
@every
@few
@given(data=st.data())
def test_pieces_with_watermarks_give_what_the_whole_gives(operator, data):
    """The parts of a stream in two phases; rows of a piece come in any order."""
    rows = data.draw(arrivals(operator, most=25))
    if operator.kind == "forward":
        return  # it has no second phase
    query = OperatorQuery(operator)
    tables = tables_of(operator, rows)
    columns = OperatorColumns([table.schema for table in tables], query)
    engine = OperatorEngine(operator)
    stream = OperatorStream(columns, engine)
    found, begin = [], 0
    while begin < len(rows):
        end = data.draw(st.integers(begin + 1, len(rows)))
        piece = rows[begin:end]
        if not operator.in_turns:  # turns are those of an order
            piece = data.draw(st.permutations(piece))
        piece = tables_of(operator, piece)
        reached = rows[begin][0] - data.draw(st.integers(0, 3))
        found.append(stream.until(columns.first(piece, engine), reached))
        begin = end
    found.append(stream.finish())
    assert not any(stream.late)
    expected = operate_tables(tables, query)
    got = pa.concat_tables(found).to_pylist()
    assert sorted(map(repr, got)) == sorted(map(repr, expected.to_pylist()))


def test_sessions_end_after_the_gap_of_their_user():
    clicks = pa.table({"timestamp": [0, 5, 12, 20, 24, 70], "user": [1, 9, 9, 1, 9, 1],
                       "bytes": [10, 20, 30, 40, 50, 60]})  # fmt: skip
    found = operate(clicks, sessions.OPERATOR)
    shown = [tuple(row.values())[1:] for row in found.to_pylist()]
    assert shown == [
        (22, 9, 5, 7, 2, 25.0),
        (34, 9, 24, 0, 1, 50.0),
        (50, 1, 0, 20, 2, 25.0),
        (100, 1, 70, 0, 1, 60.0),
    ]


def test_sessions_of_a_year_take_a_moment():
    times = pa.array([1_700_000_000 + at * 86_400 for at in range(365)])
    clicks = pa.table({"timestamp": times, "user": [3] * 365, "bytes": [1] * 365})
    assert operate(clicks, sessions.OPERATOR).num_rows == 365


def test_a_late_part_is_counted_and_left_out():
    columns = OperatorColumns([tables_of(KEYLESS, [])[0].schema], OperatorQuery(KEYLESS))
    engine = OperatorEngine(KEYLESS)
    stream = OperatorStream(columns, engine)

    def parts(*times):
        return columns.first(tables_of(KEYLESS, [(at, 0, {"price": 0}) for at in times]), engine)

    assert stream.until(parts(1, 2, 9), 0).num_rows == 0
    assert stream.until(parts(3, 6, 12), 11).to_pylist() == [
        {"window_start": 0, "window_end": 5, "n": 2},
        {"window_start": 5, "window_end": 10, "n": 1},
    ]
    assert stream.late == [2]


def test_times_of_a_column_of_timestamps_are_counted_in_units():
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    at = [begin + timedelta(milliseconds=n) for n in (0, 4_900, 5_000, 9_999)]
    table = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "price": [1, 2, 3, 4]})
    found = operate(table, KEYLESS, time="at", unit="1s").to_pylist()
    assert [(row["window_start"], row["n"]) for row in found] == [
        (begin, 2), (begin + timedelta(seconds=5), 2),
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"say how long a unit .* is, such as unit='1s'"):
        operate(table, KEYLESS, time="at")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": pa.array([1, None])}, r"Column 'price' is null in row 1 .* fill the null"),
        ({"price": pa.array(["a", "b"])}, r"integers and booleans, as it is a field of operator"),
        ({"price": pa.array([1, 1 << 40])}, r"price.*1099511627776.*give the field more bits"),
        ({"timestamp": pa.array([1, -2])}, r"timestamp.*-2"),
        ({"timestamp": pa.array([1, None])}, r"'timestamp' is null in row 1"),
    ],
    ids=["null", "text", "too large", "before zero", "no time"],
)
def test_what_no_operator_reads_is_refused(change, message):
    table = pa.table({"timestamp": [1, 2], "price": [3, 4]} | change)
    with pytest.raises((UsageError, OrderError), match=message):
        operate(table, KEYLESS)


def test_an_input_too_many_or_too_few_is_refused():
    left, right = tables_of(JOIN, [])
    with pytest.raises(UsageError, match="has 2 inputs, not 1: give it the right one too"):
        operate(left, JOIN)
    with pytest.raises(UsageError, match="has 1 input, not 2: leave the right one out"):
        operate(tables_of(KEYLESS, [])[0], KEYLESS, right)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [({"instances": "multi"}, "instances 'single'"), ({"slide": "m > 0"}, "there is no 'm' here")],
    ids=["multi", "unknown name"],
)
def test_slide_is_for_single_instances_and_reads_what_outputs_read(changes, rule):
    with pytest.raises((UsageError, ExpressionError), match=rule):
        RUNNING.with_(**changes)
    assert WindowedOperator.from_dict(RUNNING.to_dict()) == RUNNING


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ("abs(l.x - r.y) <= 3", [("x", "y", -3, 3)]),
        ("abs(r.y - l.x + 1) < 3", [("x", "y", -1, 3)]),
        ("l.x == r.x", [("x", "x", 0, 0)]),
        ("l.x <= r.x + 2", [("x", "x", None, 2)]),
        ("r.x > l.y", [("y", "x", None, -1)]),
        ("5 >= abs(l.x - r.x)", [("x", "x", -5, 5)]),
        ("(l.x - r.x <= 3) & (l.x - r.x >= -1) & (l.y != r.y)",
         [("x", "x", None, 3), ("x", "x", -1, None)]),
        ("(l.x == r.x) | (l.y == r.y)", []),
        ("2 * l.x == r.x", []),
        ("abs(l.x - l.y) < 2", []),
        ("l.timestamp - r.timestamp < 3", []),
    ],
    ids=str,
)  # fmt: skip
def test_differences_that_a_match_demands(match, found):
    assert list(differences(Expression(match))) == found


DESCRIPTION = """
from host.operators.windowed import Field, Key, Output, Reduction, WindowedOperator

rides = WindowedOperator(
    name="rides", size=10, advance=5,
    fields=[Field("item", 4, False), Field("price", 12)],
    keys=[Key("item", when="price > 0")],
    reductions=[Reduction("n", "count"), Reduction("total", "sum", "price")],
    outputs=[Output("mean", "total", per="n"), Output("n", "n")],
    having="n >= 2",
)
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "rides.py").write_text(DESCRIPTION)
    table = pa.table({"timestamp": [1, 2, 3, 12], "item": [1, 1, 2, 1], "price": [4, 5, -6, 7]})
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    return tmp_path


def run(files, description, *more):
    return main(["operate", str(files / description), "--input", str(files / "in.parquet"),
                 "--output", str(files / "out.parquet"), *more])  # fmt: skip


def test_command_runs_a_described_operator(files, capsys):
    assert run(files, "rides.py", "--verify", "--explain") == 0
    assert read_table(files / "out.parquet").to_pylist() == [
        {"window_start": -5, "window_end": 5, "item": 1, "mean": 4.5, "n": 2},
        {"window_start": 0, "window_end": 10, "item": 1, "mean": 4.5, "n": 2},
    ]
    told = capsys.readouterr()
    assert "aggregate 'rides' by item, windows of 10 every 5" in told.out
    assert "all 2 results agree with the reference operator" in told.err


@pytest.mark.parametrize(
    ("description", "text", "message"),
    [
        ("none.py", None, "There is no file"),
        ("rides.py:other", None, "has no operator 'other'; it has: rides"),
        ("two.py", DESCRIPTION + "more = rides.with_(name='more')", "must have one operator, or"),
        ("bad.py", "1 / 0", "cannot be run: ZeroDivisionError: division by zero"),
        ("bad.py", "import sys; sys.exit()", "cannot be run: SystemExit"),
        ("wrong.py", DESCRIPTION.replace("price > 0", "cost > 0"), "there is no 'cost' here"),
    ],
    ids=["missing", "another name", "two", "broken", "exiting", "contradicting"],
)
def test_command_tells_what_is_wrong_with_a_description(files, capsys, description, text, message):
    if text is not None:
        (files / description).write_text(text)
    assert run(files, description) == 2
    assert message in capsys.readouterr().err
    assert not (files / "out.parquet").exists()


def test_command_joins_two_files(files):
    (files / "join.py").write_text(
        "from tests.host.operators.operators import JOIN_AGGREGATE\nOPERATOR = JOIN_AGGREGATE\n"
    )
    left = pa.table({"timestamp": [3, 8], "x": [1, 2], "k": [0, 0]})
    right = pa.table({"timestamp": [1, 2, 5], "y": [1, 2, 3], "k": [0, 1, 0]})
    pa.parquet.write_table(left, files / "in.parquet")
    pa.parquet.write_table(right, files / "right.parquet")
    assert run(files, "join.py:OPERATOR", "--right", str(files / "right.parquet"), "--verify") == 0


@pytest.mark.parametrize("operator", [KEYLESS, FORWARD], ids=["aggregate", "forward"])
def test_a_null_in_a_later_batch_is_named_by_its_row(operator):
    rows = pa.table({"timestamp": [1, 2, 3, 4], "price": pa.array([1, 1, 1, None], pa.int64())})
    more = [] if operator is KEYLESS else [rows[:0]]
    with pytest.raises(UsageError, match=r"Column 'price' is null in row 3 .*'price': None"):
        operate(rows.to_reader(max_chunksize=2), operator, *more)


def test_an_aggregate_holds_one_batch_of_its_rows():
    begun, most, rows = pa.total_allocated_bytes(), 0, 50_000
    schema = pa.schema([("timestamp", pa.int64()), ("price", pa.int64())])

    def batches():
        nonlocal most
        for at in range(10):
            most = max(most, pa.total_allocated_bytes() - begun)
            columns = [pa.array([at] * rows), pa.array([1] * rows)]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    assert operate(reader, KEYLESS).to_pylist()[0]["n"] == 5 * rows
    assert most < 3 * 16 * rows


def test_names_of_results_are_told_apart():
    operator = JOIN_AGGREGATE.with_(reductions=(), outputs=None, having=None)
    left, right = tables_of(operator, [])
    assert operate(left, operator, right).schema.names == [
        "window_end", "k", "x", "k_left", "y", "k_right",
    ]  # fmt: skip
    assert operate(tables_of(EVERYTHING, [])[0], EVERYTHING).schema.names[:3] == [
        "window_start", "window_end", "item",
    ]  # fmt: skip


def test_an_output_without_a_divisor_is_whole():
    operator = KEYLESS.with_(outputs=[Output("twice", "n * 2"), Output("half", "n", per="2")])
    found = operate(tables_of(operator, [(1, 0, {"price": 1})])[0], operator)
    assert found.to_pylist() == [{"window_start": 0, "window_end": 5, "twice": 2, "half": 0.5}]
