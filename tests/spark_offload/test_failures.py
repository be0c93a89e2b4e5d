# SPDX-License-Identifier: Apache-2.0
"""What is found in errors of Spark where only their text is left; see also test_usage."""

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
import pytest

from host import FailureError, UsageError
from host.errors import CapacityError
from spark_offload import task_error
from spark_offload.errors import in_partition, kit_errors

UNREAD = """An error occurred while calling o245.count.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while \
reading file {file}.  SQLSTATE: KD001
\tat org.apache.spark.sql.execution.datasources.FileScanRDD$$anon$1.hasNext(FileScanRDD.scala:153)
Caused by: java.io.IOException: can not read class PageHeader: don't know what type: 15
\tat org.apache.parquet.format.Util.read(Util.java:455)
Caused by: shaded.parquet.TProtocolException: don't know what type: 15
\t... 27 more
"""


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        ("file:///data/my%20rows/a.parquet", "/data/my rows/a.parquet"),
        ("file:///data/50%25%23.parquet", "/data/50%#.parquet"),
        ("file:/data/Dr. 50%20 rows#1.parquet", "/data/Dr. 50%20 rows#1.parquet"),
        ("file:/data/my rows.parquet. Could not read footer. Please", "/data/my rows.parquet"),
        ("s3a://bucket/a.parquet", "s3a://bucket/a.parquet"),
    ],
)
def test_a_file_is_found_with_the_cause_that_says_most(file, shown):
    error = task_error(Py4JError(UNREAD.format(file=file)))
    assert isinstance(error, FailureError)
    assert str(error) == (
        f"Spark could not read file {shown!r}: can not read class PageHeader: don't know what "
        f"type: 15; mend the file, or leave it out of the input."
    )


#: What a query tells whose function for `foreachBatch` has met an error of Java.
IN_FUNCTION = """[STREAM_FAILED] Query terminated with exception: An exception was raised by the \
Python Proxy. Return Message: Traceback (most recent call last):
  File "pyspark/sql/utils.py", line 163, in call
    self.func(DataFrame(jdf, wrapped_session_jdf), batch_id)
py4j.protocol.Py4JJavaError: {error}"""


def test_a_file_is_found_behind_a_function_for_batches():
    unread = UNREAD.format(file="file:///data/a.parquet")
    error = task_error(PySparkException(IN_FUNCTION.format(error=unread)))
    assert str(error) == str(task_error(Py4JError(unread)))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            PySparkException(IN_FUNCTION.format(
                error="An error occurred.\n: a.b.PythonException: Traceback (most recent call "
                "last):\n  File \"a.py\", line 1\nZeroDivisionError: division by zero\n\n\tat a.b.C"
            )),
            "A Spark task failed: ZeroDivisionError: division by zero.",
        ),
        (Py4JError("Answer is empty"), "Spark failed: Answer is empty."),
        (
            Py4JError("An error.\n: a.b.C: gone\nCaused by: java.lang.OutOfMemoryError: heap"),
            "Spark failed: OutOfMemoryError: heap.",
        ),
        (PySparkException("[SOME] thing SQLSTATE: 42703;\nplan"), "Spark failed: [SOME] thing."),
        (ZeroDivisionError("by zero"), "ZeroDivisionError: by zero."),
        (KeyError(), "KeyError."),
    ],
)  # fmt: skip
def test_any_exception_becomes_one_sentence(error, sentence):
    assert str(task_error(error)) == sentence


def test_an_error_of_the_kit_stays_itself_with_its_partition_and_without_its_past():
    try:
        try:
            raise ValueError("deep inside")
        except ValueError as cause:
            raise CapacityError(None, 64, side="R", is_timed=True) from cause
    except CapacityError as error:
        told = in_partition(error, 3)
    assert isinstance(told, CapacityError)
    assert str(told).endswith("(In Spark partition 3.)")
    assert told.__cause__ is told.__context__ is told.__traceback__ is None
    assert task_error(told) is told


def test_what_spark_raises_inside_is_turned_and_nothing_else():
    with pytest.raises(FailureError, match=r"Spark failed: gone\."), kit_errors():
        raise Py4JError("gone")
    with pytest.raises(UsageError, match="mine"), kit_errors():
        raise UsageError("mine")
    with pytest.raises(ZeroDivisionError), kit_errors():
        raise ZeroDivisionError
