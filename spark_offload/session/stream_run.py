# SPDX-License-Identifier: Apache-2.0
"""A streaming frame run to its end, for whoever wants all of its rows at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame

__all__ = ["all_of_stream"]


@contextmanager
def all_of_stream(frame: DataFrame) -> Iterator[DataFrame]:
    """Run a query over the data that the sources of a frame hold now; yield all results at once.

    Nothing of the query is left when the context ends, neither a checkpoint nor its results, which
    the driver holds until then.
    """
    name = f"splitjoin_{uuid4().hex}"
    query = (
        frame.writeStream.format("memory")
        .queryName(name)
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
        yield frame.sparkSession.table(name)
    finally:
        query.stop()
        frame.sparkSession.catalog.dropTempView(name)
