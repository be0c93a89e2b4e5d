# SPDX-License-Identifier: Apache-2.0
"""The report of an elastic pool shows the load, the devices and why."""

from pathlib import Path

import pytest

from host.errors import UsageError
from spark_offload import MicroBatch
from spark_offload.cli.report import write_pool_report
from tests.spark_offload.cli.test_report import Checker
from tests.spark_offload.cluster.test_pool_log import decided

#: Loads of the micro-batches in tenths: devices are given back, and taken again.
LOADS = [1, 1, 1, 1, 1, 1, 10, 10, 10, 10]


def batches(shares, machines=("here <1>", "there"), join="splitjoin-1"):
    by_machine = [decided(machine, shares) for machine in machines]
    return [
        MicroBatch(
            batch=batch, join=join, watermark="", trigger_seconds=0.5, left_rows=100 * batch,
            right_rows=50, left_late=0, right_late=0, results=1, stored=0, expired=0, cycles=0,
            seconds=0.1, device_seconds=0.1, waited_seconds=0.25,
            decisions=tuple(own[batch] for own in by_machine),
        )
        for batch in range(len(shares))
    ]  # fmt: skip


def written(tmp_path, *arguments):
    path = tmp_path / "folder" / "pool.html"
    write_pool_report(*arguments, path)
    page = path.read_text("utf-8")
    Checker().feed(page)
    return page


def test_devices_and_rows_are_drawn_with_the_decisions(tmp_path):
    page = written(tmp_path, batches(LOADS))
    assert "here &lt;1&gt;" in page
    assert "here <1>" not in page
    assert "Devices in use on there, of 5" in page
    assert "0 micro-batch: 5 devices in use" in page
    assert "8 micro-batch: 2 devices in use" in page
    assert "3 micro-batch: 700 rows per second" in page
    assert "Tasks waited 2.50 s for devices in all." in page
    decisions = [one for batch in batches(LOADS) for one in batch.decisions]
    kept = sum(one.seen is not None for one in decisions) + 2
    assert page.count("<tr>") == 1 + kept
    assert "<td>100%</td>" in page


def test_of_several_joins_the_first_is_drawn(tmp_path):
    page = written(tmp_path, [*batches([5]), *batches([5], machines=("other",), join="second")])
    assert "other" not in page


def test_a_pool_that_is_not_elastic_has_no_devices_to_draw(tmp_path):
    page = written(tmp_path, batches([5], machines=()))
    assert "Nothing to draw" in page
    assert "Decisions" not in page


def test_nothing_is_no_report():
    with pytest.raises(UsageError, match="at least one micro-batch"):
        write_pool_report([], Path("unused.html"))
