# SPDX-License-Identifier: Apache-2.0
"""Described operators on frames and streams: the answer is that of the reference operator."""

from datetime import UTC, datetime, timedelta
import os

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hdl.__main__ import main as hdl
from host import UsageError
from host.errors import AcceleratorLimitError
import host.operators.operate
from host.operators.operate import OperatorQuery, load_description, reference_rows
from spark_offload import explain, metrics, operate, stream_metrics, verify
from tests.examples.test_operate_on_device import EXAMPLES, LIKE_OTHERS, OPERATORS, tables_of

names = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in LIKE_OTHERS else (), id=name)
        for name in OPERATORS
    ],
)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
#: A time that is later than all windows of the rows.
LATER = 100_000


def described(name):
    return load_description(str(EXAMPLES / OPERATORS[name]))


def rows_of(rows):
    return sorted(repr(row) for row in rows)


def answered(frame):
    return rows_of(row.asDict() for row in frame.collect())


@pytest.mark.few(1)
@names
def test_operators_of_the_appendix_give_their_answer(spark, name):
    operator = described(name)
    tables = tables_of(name, operator)
    frames = [spark.createDataFrame(table.to_pandas()) for table in tables]
    if not operator.in_turns:  # turns are those of the order of the rows
        frames = [frame.repartition(3) for frame in frames]
    answer = operate(frames[0], operator, *frames[1:])
    expected = reference_rows(tables, OperatorQuery(operator))
    assert answered(answer) == rows_of(expected.to_pylist())
    assert answer.columns == expected.schema.names


def in_time(table):
    """Rows sorted by time, which is a timestamp, a second for each unit."""
    table = table.sort_by("timestamp")
    times = [BEGIN + timedelta(seconds=at) for at in table["timestamp"].to_pylist()]
    return table.set_column(0, "timestamp", pa.array(times, pa.timestamp("us", "UTC")))


def files_of(table, folder, schema):
    """Write rows as two files, and a row that lies behind all windows as the third."""
    folder.mkdir()
    last = {one.name: [0] for one in schema} | {"timestamp": [BEGIN + timedelta(seconds=LATER)]}
    half = table.num_rows // 2
    pieces = [
        table.slice(0, half),
        table.slice(half),
        pa.table(last).select(table.schema.names).cast(table.schema),
    ]
    for at, piece in enumerate(pieces):
        pq.write_table(piece, folder / f"{at}.parquet")
        os.utime(folder / f"{at}.parquet", (1_600_000_000 + at,) * 2)  # Spark takes files by age
    return pa.concat_tables(pieces)


def streamed(spark, folder):
    """The rows of the files of a folder, a file in each micro-batch."""
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder)).withWatermark("timestamp", "0 seconds")


def run(answer, name, folder):
    """Run a query to its end; return its rows and the query."""
    writer = answer.writeStream.format("memory").queryName(name).outputMode("append")
    writer = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    return [row.asDict() for row in answer.sparkSession.table(name).collect()], query


def stream_agrees(spark, name, tmp_path, **options):
    """Compare an operator on streams with the reference; return the query."""
    operator = described(name)
    tables, frames = [], []
    for side, table in enumerate(tables_of(name, operator)):
        folder = tmp_path / f"side{side}"
        tables.append(files_of(in_time(table), folder, operator.schemas[side]))
        frames.append(streamed(spark, folder))
    answer = operate(frames[0], operator, *frames[1:], unit="1s", **options)
    found, query = run(answer, f"answer_{tmp_path.name}".replace("-", "_"), tmp_path / "state")
    before = BEGIN + timedelta(seconds=LATER)
    expected = reference_rows(tables, OperatorQuery(operator, unit="1s"))
    expected = expected.filter(pc.field("window_end") < pa.scalar(before)).to_pylist()
    at = [row | {k: v.astimezone(UTC) for k, v in row.items() if isinstance(v, datetime)}
          for row in found]  # fmt: skip
    early = [row for row in at if row["window_end"] < before]
    utc = [row | {k: v.astimezone(UTC) for k, v in row.items() if isinstance(v, datetime)}
           for row in expected]  # fmt: skip
    assert rows_of(early) == rows_of(utc)
    assert len(expected) > 5
    return answer, query


@pytest.mark.few(1)
@names
def test_streams_give_what_the_reference_gives(spark, tmp_path, name):
    answer, query = stream_agrees(spark, name, tmp_path)
    assert explain(answer).columns == tuple(answer.columns)
    if described(name).kind != "forward":
        assert sum(batch.results for batch in stream_metrics(query)) > 5


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    """The accelerator of sessions."""
    library = pytest.importorskip("sim.verilated.library")
    folder = tmp_path_factory.mktemp("sessions") / "bundle"
    description = str(EXAMPLES / "sessions.py")
    assert hdl(["generate", "--operator", description, "--output", str(folder)]) == 0
    library.build_library(folder)
    return f"sim:{folder}"


@pytest.fixture
def simulated(device, monkeypatch):
    """Let ``sim:`` find the accelerator of sessions where the driver looks for it."""

    def bundle_of(document):
        assert document == described("sessions").circuit()
        return device.removeprefix("sim:")

    monkeypatch.setattr(host.operators.operate, "operator_bundle", bundle_of)
    return device


@pytest.mark.long
def test_tasks_reduce_their_rows_on_a_device(spark, tmp_path, simulated):
    operator = described("sessions")
    tables = tables_of("sessions", operator)
    frame = spark.createDataFrame(tables[0].to_pandas()).repartition(2)
    answer = operate(frame, operator, device="sim:")
    expected = reference_rows(tables, OperatorQuery(operator))
    assert answered(answer) == rows_of(expected.to_pylist())
    assert sum(task.cycles for task in metrics(answer).tasks) > 0
    assert simulated in str(explain(answer))


@pytest.mark.long
def test_a_device_reduces_the_rows_of_micro_batches(spark, tmp_path, simulated):
    answer, _ = stream_agrees(spark, "sessions", tmp_path, device="sim:")
    assert simulated in str(explain(answer))


def test_what_no_plan_can_do_is_refused_before_anything_runs(spark, device):
    operator = described("14: wordcount")
    frame = spark.createDataFrame(tables_of("14: wordcount", operator)[0].to_pandas())
    with pytest.raises(AcceleratorLimitError, match="was generated for operator 'sessions'"):
        operate(frame, operator, device=device)
    with pytest.raises(UsageError, match="there is none called 'word7'|'word7'"):
        operate(frame.drop("word7"), operator)
    with pytest.raises(UsageError, match="leave the right one out"):
        operate(frame, operator, frame)
    scalejoin = described("10: ScaleJoin")
    left, right = (
        spark.createDataFrame(table.to_pandas()) for table in tables_of("10: ScaleJoin", scalejoin)
    )
    with pytest.raises(UsageError, match="'scalejoin' stores in turns: all its rows meet in one"):
        operate(left, scalejoin, right, partitions=2)
    with pytest.raises(UsageError, match="Spark by itself has no such operator to verify it with"):
        verify(operate(frame, operator))
