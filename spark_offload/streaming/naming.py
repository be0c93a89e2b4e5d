# SPDX-License-Identifier: Apache-2.0
"""Names under which the progress of a query has the numbers of its joins and aggregations."""

from collections.abc import Mapping
import hashlib
import json
import re

from pyspark.sql import DataFrame

from spark_offload.catalyst import analysed
from spark_offload.cluster import is_connect
from spark_offload.streaming.metrics import METRICS

__all__ = ["metrics_name"]

_CHANGING = re.compile(r"#\d+L?|@[0-9a-f]+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""What differs between two plans of the same frame: numbers of columns, addresses, identities."""


def metrics_name(question: Mapping[str, str], *inputs: DataFrame, kind: str = METRICS) -> str:
    """Return a name that tells a join from others, and is the same when a query starts again.

    Parameters
    ----------
    question : mapping of str to str
        What the join asks; see :func:`~spark_offload.streaming.question.question_of`.
    inputs : DataFrame
        By what they are read from and what is done to them.
    kind : str
        First part of the name.
    """
    text = json.dumps([dict(question), *map(_described, inputs)], sort_keys=True)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _described(frame: DataFrame) -> str:
    """Return the plan of a frame as a text that does not depend on the process."""
    if is_connect(frame):
        plan = frame._explain_string(mode="extended")  # type: ignore[operator]
        plan = plan.partition("== Analyzed Logical Plan ==")[2].partition("== Optimized")[0]
    else:
        plan = analysed(frame).toString()
    return _CHANGING.sub("", plan)
