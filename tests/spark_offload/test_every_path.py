# SPDX-License-Identifier: Apache-2.0
"""The paths through Spark give one answer, or one error: a plain loop's.

A job of Spark costs far more than the join of a few rows. So the answers to many joins are united
into one frame of pickled rows, and collected together.
"""

from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
import os
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
import pytest

from host import UsageError
from spark_offload import explain, stream_join, task_error, verify
from spark_offload.__main__ import main
from spark_offload.columns import quoted
from spark_offload.spark_tables import frame_of_table
from tests.host.tables import bundle
from tests.paths.arguments import command_options, spark_arguments
from tests.paths.cases import CASES, REFUSED, random_case
from tests.paths.oracle import compare, row_of

FEW = tuple(random_case(seed) for seed in range(1000, 1008))
MANY = (*CASES, *(random_case(seed) for seed in range(1008, 1080)))
ODD = tuple(case for case in CASES if case.name.startswith(("backticks", "names of")))
"""Cases with names that could be mistaken."""
SOME = ("some", "many")
FULL_OUTER = 2058
"""Seed of a full outer join with an equality and odd names."""


@pytest.fixture(scope="module")
def unfit(tmp_path_factory):
    """The address of a device that can serve no join of tables, so that Spark joins by itself."""
    folder = tmp_path_factory.mktemp("unfit")
    custom = bundle(folder, keys=("x8", "x8"), comparator="custom", predicate="operator:eq")
    return f"software:{custom}"


def frames(spark, case):
    """Return the inputs of a case, whose order columns are declared whole if they are."""
    return [
        frame_of_table(spark, declared_whole(table, order), f"the {side} input")
        for side, table, order in zip(
            ("left", "right"), (case.left, case.right), case.query.order, strict=True
        )
    ]


def declared_whole(table, order):
    """Return ``table`` with ``order`` as a column without nulls, for which there is no check."""
    if table.column_names.count(order) != 1 or table.column(order).null_count:
        return table
    at = table.column_names.index(order)
    schema = table.schema.set(at, table.schema.field(at).with_nullable(False))
    return table.cast(schema)


def joined(spark, case, **options):
    """Return the answer to a case as a frame."""
    return stream_join(*frames(spark, case), **(spark_arguments(case.query) | options))


def packed(frame, number):
    """Return the rows of ``frame`` as texts, numbered by their join; all such frames are alike."""

    def splitjoin_pack(batches):
        for batch in batches:
            rows = [pickle.dumps(tuple(row.values())) for row in batch.to_pylist()]
            numbers = pa.array([number] * len(rows), pa.int32())
            yield pa.record_batch([numbers, pa.array(rows, pa.binary())], ["number", "row"])

    # Positions as names, because rows become dictionaries.
    places = [f"c{index}" for index in range(len(frame.columns))]
    return frame.toDF(*places).mapInArrow(splitjoin_pack, "number int, row binary")


def collected(frames):
    """Return the rows of every frame, by one action."""
    parts = [packed(frame, number) for number, frame in enumerate(frames)]
    rows = [[] for _ in parts]
    for row in reduce(DataFrame.unionAll, parts).collect():
        rows[row.number].append(row_of(pickle.loads(row.row)))
    return rows


def wrong_answers(cases, answers, *, ordered):
    """Return what is wrong with the answers to ``cases``."""
    texts = [
        compare(case, frame.columns, rows, ordered=ordered)
        for case, frame, rows in zip(cases, answers, collected(answers), strict=True)
    ]
    return [text for text in texts if text]


def kind_of_answer(case):
    """Return how the rows of a case can be partitioned: by keys, or by ranges of time."""
    equal = any(term.is_equality for term in case.query.terms)
    return "key" if equal and case.query.is_timed else "range"


@pytest.mark.parametrize(
    "cases", [(*CASES[::4], *ODD, *FEW), pytest.param(MANY, marks=pytest.mark.long)], ids=SOME
)
def test_one_partition_has_the_answer_in_order(spark, cases):
    answers = [joined(spark, case, device="software:", partitions=1) for case in cases]
    assert wrong_answers(cases, answers, ordered=True) == []


@pytest.mark.parametrize(
    "cases", [(*CASES[::4], *FEW), pytest.param(MANY, marks=pytest.mark.long)], ids=SOME
)
def test_partitions_by_key_have_the_answer(spark, cases):
    cases = [case for case in cases if kind_of_answer(case) == "key"]
    answers = [joined(spark, case, device="software:", partitions=3) for case in cases]
    assert wrong_answers(cases, answers, ordered=False) == []


@pytest.mark.parametrize(
    "cases",
    [
        [case for case in CASES if case.name.startswith(("times as far", "no terms, full"))],
        pytest.param(MANY, marks=pytest.mark.long),
    ],
    ids=SOME,
)
def test_ranges_of_time_have_the_answer_in_order(spark, cases):
    answers = [
        joined(spark, case, device="software:", partitions=3, partition_by="range")
        for case in cases
    ]
    assert wrong_answers(cases, answers, ordered=True) == []


@pytest.mark.parametrize(
    "cases", [(*CASES[1::3], *ODD, *FEW), pytest.param(MANY, marks=pytest.mark.long)], ids=SOME
)
def test_spark_itself_has_the_answer(spark, unfit, cases):
    cases = [case for case in cases if case.query.is_timed]
    answers = [joined(spark, case, device=unfit) for case in cases]
    assert {explain(answer).device for answer in answers[:1]} == {"none: Spark's own join"}
    assert wrong_answers(cases, answers, ordered=False) == []


@pytest.mark.parametrize(
    ("case", "path"),
    [
        # By default every case takes one of the two paths: each costs an action of Spark.
        pytest.param(case, path, marks=(pytest.mark.long,) if (number + turn) % 2 else ())
        for number, case in enumerate(REFUSED)
        for turn, path in enumerate(("a device", "Spark itself"))
    ],
    ids=str,
)
def test_what_must_be_refused_is_refused_on_every_path(spark, unfit, case, path):
    device = "software:" if path == "a device" else unfit
    error = refusal(lambda: joined(spark, case, device=device).collect())
    assert [word for word in case.words if word not in str(error)] == []


def refusal(action):
    """Return the error of this kit that an action of Spark ends with."""
    with pytest.raises((UsageError, PySparkException)) as caught:
        action()
    error = caught.value
    return task_error(error) if isinstance(error, PySparkException) else error


@pytest.mark.parametrize(
    "cases",
    [
        ODD[:2],
        pytest.param(MANY, marks=pytest.mark.long),
    ],
    ids=SOME,
)
def test_the_command_writes_the_answer_in_order(spark, tmp_path, capsys, cases):
    wrong = []
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        code = main(["join", *command_options(case, folder, device="software:")])
        assert code == 0, (str(case), capsys.readouterr().err)
        table = pq.read_table(folder / "out.parquet")
        rows = [row_of(row.values()) for row in table.to_pylist()]
        wrong.append(compare(case, table.column_names, rows, ordered=True))
    assert [text for text in wrong if text] == []


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_an_answer_with_odd_names_is_verified(spark, share):
    case = next(case for case in ODD if case.name.startswith("names of one input"))
    assert verify(joined(spark, case, device="software:"), share=share).agrees


class Streams:
    """The inputs of a case as streams of files: their rows, and two that let time pass."""

    def __init__(self, spark, folder, case):
        self._spark = spark
        self._folder = folder
        self._case = case

    def rows(self):
        """Run the join over micro-batches; return its rows without those that end the streams."""
        query = self._case.query
        sides = [
            self._stream(side, table, order)
            for side, table, order in zip(
                ("left", "right"), (self._case.left, self._case.right), query.order, strict=True
            )
        ]
        answer = stream_join(*sides, device="software:", **spark_arguments(query))
        name = f"answer_{abs(hash(self._folder))}"
        writer = packed(answer, 0).writeStream.format("memory").queryName(name)
        writer = writer.option("checkpointLocation", str(self._folder / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        rows = [row_of(pickle.loads(row.row)) for row in self._spark.table(name).collect()]
        return answer.columns, [row for row in rows if "'end'" not in row]

    def _stream(self, side, table, order):
        folder = self._folder / side
        folder.mkdir()
        text = table.column_names[-1]
        half = table.num_rows // 2
        table = table.sort_by(order)
        ends = [
            pa.Table.from_pylist(
                [{order: datetime(2100, 1, day, tzinfo=UTC), text: "end"}], table.schema
            )
            for day in (1, 2)
        ]
        for number, part in enumerate((table[:half], table[half:], *ends)):
            path = folder / f"{number}.parquet"
            pq.write_table(part, path)
            os.utime(path, (1_600_000_000 + number,) * 2)  # Spark takes files by their age.
        schema = frame_of_table(self._spark, table, side).schema
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder)).withWatermark(quoted(order), "1 minute")


@pytest.mark.parametrize(
    "seeds",
    [[FULL_OUTER], pytest.param(range(2000, 2010), marks=pytest.mark.long)],
    ids=SOME,
)
def test_streams_have_the_answer(spark, tmp_path, seeds):
    wrong = []
    for seed in seeds:
        case = random_case(seed, streams=True)
        folder = tmp_path / str(seed)
        folder.mkdir()
        names, rows = Streams(spark, folder, case).rows()
        wrong.append(compare(case, names, rows, ordered=False))
    assert [text for text in wrong if text] == []


def test_a_stream_with_a_null_time_is_refused(spark, tmp_path):
    case = random_case(FULL_OUTER, streams=True)
    times = pa.array([None, *case.left.column(0).to_pylist()[1:]], case.left.schema.field(0).type)
    name = case.left.column_names[0]
    case = replace(case, left=case.left.set_column(0, name, times))
    error = refusal(Streams(spark, tmp_path, case).rows)
    assert isinstance(error, UsageError)
    assert f"Order column {name!r} of the left input is null in row" in str(error)
