# SPDX-License-Identifier: Apache-2.0
"""The paths through Spark give one answer, or one error: a plain loop's."""

from contextlib import suppress

import pyarrow.parquet as pq
from pyspark.errors import AnalysisException
import pytest

from hdl.parameters import JoinParameters
from host import UsageError
from host.devices.software import SOFTWARE_MANIFEST
from host.protocol.manifest import Manifest
from spark_offload import explain, verify
from spark_offload.__main__ import main
from tests.host.small_bundles import write_manifest
from tests.host.tables import bundle
from tests.paths.arguments import command_options
from tests.paths.asof_cases import ASOF_CASES, ASOF_REFUSED, SPARK_TIMES, random_asof_case
from tests.paths.asof_oracle import compare_asof
from tests.paths.cases import CASES, REFUSED
from tests.paths.oracle import compare, row_of
from tests.paths.overlap_cases import OVERLAPS, random_overlap
from tests.paths.random_cases import random_case
from tests.paths.spark_answers import (
    asof_joined,
    asof_joined_from_files,
    joined,
    joined_from_files,
    overlapped,
    overlapped_from_files,
    own_asof_joined,
    refusal,
    wrong_answers,
)

FEW = tuple(random_case(seed) for seed in (1000, 1001))
MANY = (*CASES, *(random_case(seed) for seed in range(1000, 1080)))
ODD = tuple(case for case in CASES if case.name.startswith(("backticks", "names of")))
"""Cases with names that could be mistaken."""
SOME = ("some", "many")


@pytest.fixture(scope="module")
def unfit(tmp_path_factory):
    """The address of a device that can serve no join of tables, so that software joins."""
    folder = tmp_path_factory.mktemp("unfit")
    custom = bundle(folder, keys=("x8", "x8"), comparator="custom", predicate="operator:eq")
    return f"software:{custom}"


@pytest.fixture(scope="module")
def two_in_a_word(tmp_path_factory):
    """The address of a software device that takes two tuples in a word."""
    values = Manifest.load(SOFTWARE_MANIFEST).values["parameters"]
    parameters = JoinParameters.from_dict(values)
    parameters = parameters.with_(engine="index", bucket_bits=8, lanes=1, tuples_per_word=2)
    return f"software:{write_manifest(parameters, tmp_path_factory.mktemp('two') / 'bundle')}"


def has_keys(case):
    """Tell whether the rows of a case can be partitioned by keys, not only by ranges of time."""
    return case.query.is_timed and any(term.is_equality for term in case.query.terms)


@pytest.mark.long
@pytest.mark.parametrize(
    "cases", [(*CASES[::4], *ODD, *FEW), pytest.param(MANY, marks=pytest.mark.long)], ids=SOME
)
def test_one_partition_has_the_answer_in_order(spark, cases):
    answers = [joined(spark, case, device="software:", partitions=1) for case in cases]
    assert wrong_answers(cases, answers, ordered=True) == []


@pytest.mark.long
def test_two_tuples_in_a_word_have_the_answer_in_order(spark, two_in_a_word):
    cases = (*CASES[2::8], *FEW)
    answers = [joined(spark, case, device=two_in_a_word, partitions=1) for case in cases]
    assert wrong_answers(cases, answers, ordered=True) == []


@pytest.mark.parametrize(
    "cases", [(*CASES[::8], *FEW), pytest.param(MANY, marks=pytest.mark.long)], ids=SOME
)
def test_partitions_by_key_have_the_answer(spark, cases):
    cases = [case for case in cases if has_keys(case)]
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
    "cases", [(*CASES[::12], *FEW), pytest.param(MANY, marks=pytest.mark.long)], ids=SOME
)
def test_tasks_that_read_files_have_the_answer_in_order(spark, tmp_path, cases):
    served, answers = [], []
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        # Such as a window of rows, nulls among the times, or names that Spark does not tell apart.
        with suppress(UsageError, AnalysisException):
            answers.append(joined_from_files(spark, case, folder, device="software:", partitions=3))
            served.append(case)
    assert len(served) > len(cases) / 3
    assert wrong_answers(served, answers, ordered=True) == []


@pytest.mark.parametrize(
    "cases",
    [(*CASES[1::10], *ODD[:2], *FEW), pytest.param(MANY, marks=pytest.mark.long)],
    ids=SOME,
)
def test_the_software_engine_answers_where_no_device_serves(spark, unfit, cases):
    answers = [joined(spark, case, device=unfit) for case in cases]
    assert {explain(answer).device for answer in answers[:1]} == {"software:"}
    assert wrong_answers(cases, answers, ordered=False) == []


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("case", "path"),
    [
        # By default every case takes one of the two paths: each costs an action of Spark.
        pytest.param(case, path, marks=(pytest.mark.long,) if (number + turn) % 2 else ())
        for number, case in enumerate(REFUSED)
        for turn, path in enumerate(("a device", "an unfit device"))
    ],
    ids=str,
)
def test_what_must_be_refused_is_refused_on_every_path(spark, unfit, case, path):
    device = "software:" if path == "a device" else unfit
    error = refusal(lambda: joined(spark, case, device=device).collect())
    assert [word for word in case.words if word not in str(error)] == []


@pytest.mark.parametrize(
    "cases",
    [
        ODD[:2],
        pytest.param(MANY, marks=pytest.mark.long),
    ],
    ids=SOME,
)
def test_the_command_writes_the_answer(spark, tmp_path, capsys, cases):
    wrong = []
    for number, case in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        code = main(["join", *command_options(case, folder, device="software:")])
        assert code == 0, (str(case), capsys.readouterr().err)
        table = pq.read_table(folder / "out.parquet")
        rows = [row_of(row.values()) for row in table.to_pylist()]
        wrong.append(compare(case, table.column_names, rows, ordered=False))
    assert [text for text in wrong if text] == []


@pytest.mark.parametrize(
    "overlaps",
    [
        (OVERLAPS[7], *map(random_overlap, (0, 2))),
        pytest.param((*OVERLAPS, *map(random_overlap, range(3, 60))), marks=pytest.mark.long),
    ],
    ids=SOME,
)
def test_overlaps_have_the_answer_in_order(spark, overlaps):
    answers = [overlapped(spark, one, device="software:", partitions=1) for one in overlaps]
    cases = [overlap.case for overlap in overlaps]
    assert wrong_answers(cases, answers, ordered=True) == []


@pytest.mark.parametrize(
    "overlaps",
    [
        (OVERLAPS[7], *map(random_overlap, (0, 2))),
        pytest.param((*OVERLAPS, *map(random_overlap, range(3, 60))), marks=pytest.mark.long),
    ],
    ids=SOME,
)
def test_overlaps_of_files_have_the_answer_in_order(spark, tmp_path, overlaps):
    served, answers = [], []
    for number, overlap in enumerate(overlaps):
        with suppress(UsageError, AnalysisException):
            answers.append(overlapped_from_files(spark, overlap, tmp_path / str(number)))
            served.append(overlap.case)
    assert len(served) > len(overlaps) / 3
    assert wrong_answers(served, answers, ordered=True) == []


@pytest.mark.long
def test_spark_itself_has_the_overlaps(spark, unfit):
    overlaps = (*OVERLAPS, *map(random_overlap, range(20)))
    answers = [overlapped(spark, one, device=unfit) for one in overlaps]
    cases = [overlap.case for overlap in overlaps]
    assert wrong_answers(cases, answers, ordered=False) == []


ASOF_MANY = (*ASOF_CASES, *map(random_asof_case, range(1000, 1060)))
ASOF_SOME = (*ASOF_CASES[::5], *ASOF_MANY[-3:])


@pytest.mark.parametrize(
    "cases", [ASOF_SOME[::2], pytest.param(ASOF_MANY, marks=pytest.mark.long)], ids=SOME
)
def test_asof_joins_of_files_have_the_answer_in_order(spark, tmp_path, cases):
    served, answers = [], []
    for number, case in enumerate(cases):
        with suppress(UsageError, AnalysisException):
            answer = asof_joined_from_files(spark, case, tmp_path / str(number))
            if "reads Parquet files" in explain(answer).partitioning:
                answers.append(answer)
                served.append(case)
    assert len(served) > len(cases) / 3
    assert wrong_answers(served, answers, ordered=True, judge=compare_asof) == []


@pytest.mark.parametrize(
    "cases", [ASOF_SOME[::2], pytest.param(ASOF_MANY, marks=pytest.mark.long)], ids=SOME
)
def test_asof_joins_in_one_partition_have_the_answer_in_order(spark, cases):
    answers = [asof_joined(spark, case, partitions=1) for case in cases]
    assert wrong_answers(cases, answers, ordered=True, judge=compare_asof) == []


@pytest.mark.parametrize(
    "cases", [ASOF_SOME[::3], pytest.param(ASOF_MANY, marks=pytest.mark.long)], ids=SOME
)
def test_asof_joins_in_partitions_have_the_answer(spark, cases):
    cases = [case for case in cases if case.query.on]
    answers = [asof_joined(spark, case, partitions=3) for case in cases]
    assert wrong_answers(cases, answers, ordered=False, judge=compare_asof) == []


@pytest.mark.parametrize(
    ("cases", "times"),
    [
        (ASOF_SOME[::4], SPARK_TIMES[::5]),
        pytest.param(ASOF_MANY, SPARK_TIMES, marks=pytest.mark.long),
    ],
    ids=SOME,
)
def test_spark_itself_has_the_answer_to_asof_joins(spark, cases, times):
    answers = [own_asof_joined(spark, case) for case in cases]
    answers += [asof_joined(spark, case) for case in times]
    assert wrong_answers([*cases, *times], answers, ordered=False, judge=compare_asof) == []


@pytest.mark.parametrize(
    "case",
    [
        # By default only one of them costs an action of Spark.
        pytest.param(case, marks=(pytest.mark.long,) if 0 < number < 3 else ())
        for number, case in enumerate(ASOF_REFUSED)
    ],
    ids=str,
)
def test_asof_joins_that_must_be_refused_are_refused(spark, case):
    error = refusal(lambda: asof_joined(spark, case).collect())
    assert [word for word in case.words if word not in str(error)] == []


@pytest.mark.parametrize("share", [1.0, pytest.param(0.5, marks=pytest.mark.long)])
def test_an_answer_with_odd_names_is_verified(spark, share):
    case = next(case for case in ODD if case.name.startswith("names of one input"))
    assert verify(joined(spark, case, device="software:"), share=share).agrees
