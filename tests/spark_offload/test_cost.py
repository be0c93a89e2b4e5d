# SPDX-License-Identifier: Apache-2.0
"""What a join costs in Spark alone is read off Spark's plan, and nothing is printed for that."""

from concurrent.futures import ThreadPoolExecutor
import sys

import pytest

from spark_offload import explain, stream_join
from spark_offload.explanation import join_operator


@pytest.fixture
def frames(spark):
    left = spark.range(20).selectExpr("id as time", "id % 3 as k")
    return left, left


def test_the_operator_is_that_of_the_physical_plan(spark, frames):
    left, right = frames
    hinted = left.hint("merge").join(right, left.k == right.k)
    assert join_operator(hinted) == "SortMergeJoin"
    assert join_operator(left.crossJoin(right)) in {"CartesianProduct", "BroadcastNestedLoopJoin"}
    assert join_operator(left) is None


def test_an_explanation_leaves_the_standard_output_to_the_program(frames, capsys, monkeypatch):
    class Watched:
        """Standard output that notes when somebody puts another one into its place."""

        def __init__(self):
            self.inner, self.printed = sys.stdout, []

        def write(self, text):
            self.printed.append(text)
            return len(text)

        def flush(self):
            pass

    def explained(number):
        pairs = stream_join(*frames, on="k", time="time", within=2 + number, device="software:")
        text = str(explain(pairs))  # which prints it, too
        print(f"said {number};", end="")
        return text

    output = Watched()
    monkeypatch.setattr(sys, "stdout", output)
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(explained, range(8)))
    assert sys.stdout is output
    # All that the program has printed is there, and none of Spark's plans.
    said = [f"said {number};" for number in range(8)]
    assert sorted(text for text in output.printed if text.strip()) == sorted([*said, *texts])
    assert all("Spark's own plan: " in text and "Join" in text for text in texts)
