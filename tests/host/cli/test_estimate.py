# SPDX-License-Identifier: Apache-2.0
"""`python -m host estimate` says what devices would bring, from what it measures and the model."""

from dataclasses import replace
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host import join
from host.__main__ import main
from host.protocol.cost_model import Workload, cycles_per_tuple
from host.protocol.modelled import modelled_devices


def write(folder, rows, seed=1):
    """Write two tables with times in turn and a key of 100 values; return their paths."""
    random = np.random.default_rng(seed)
    paths = []
    for side in range(2):
        times = pa.array(np.arange(rows) * 2 + side)
        table = pa.table({"t": times, "k": random.integers(0, 100, rows)})
        paths.append(str(folder / f"{side}.parquet"))
        pq.write_table(table, paths[-1])
    return paths


def estimate(paths, *more):
    left, right = paths
    return main(["estimate", "--left", left, "--right", right, "--time", "t", "--on", "k", *more])


def test_a_line_for_each_device_and_where_its_figures_are_from(tmp_path, capsys):
    paths = write(tmp_path, 3_000)
    assert estimate(paths, "--within", "400") == 0
    out = capsys.readouterr().out
    pairs = join(*paths, time="t", on="k", within=400, device="software:").num_rows
    assert (
        f"3,000 + 3,000 rows, 193 and 193 of them in the windows on average, {pairs:,} results"
        in out
    )
    for device in modelled_devices():
        first, second = re.findall(rf"^{re.escape(device.name)}[: ].*$", out, re.MULTILINE)
        assert re.search(r"\((device|link|host)\) +\d+\.\d\d +(never|[\d,]+ rows)$", first)
        assert device.clock in second
        assert device.link.known in second


def test_a_window_that_a_device_cannot_hold_is_told(tmp_path, capsys):
    assert estimate(write(tmp_path, 20_000), "--rows", "10000") == 0
    out = capsys.readouterr().out
    assert re.search(r"^ECP5-85F, index +holds 7,964 rows a side, too few$", out, re.MULTILINE)
    assert "holds 65,536" not in out


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_few_rows_are_enough(tmp_path, capsys, rows):
    assert estimate(write(tmp_path, rows), "--within", "1", "--first", "5") == 0
    assert f"{min(rows, 5)} + {min(rows, 5)} rows" in capsys.readouterr().out


def test_without_rows_there_is_nothing_to_estimate_from(tmp_path, capsys):
    assert estimate(write(tmp_path, 0), "--within", "1") == 2
    assert "have no rows to estimate from" in capsys.readouterr().err


def test_only_the_first_rows_are_joined(tmp_path, capsys):
    assert estimate(write(tmp_path, 3_000), "--within", "4", "--first", "1000") == 0
    assert "1,000 + 1,000 rows" in capsys.readouterr().out
    assert estimate(write(tmp_path, 10), "--within", "4", "--first", "none") == 2
    assert "--first takes a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("device", modelled_devices(), ids=lambda device: device.name)
def test_the_slowest_part_decides(device):
    rows, window, results = 100_000, (2_000.0, 2_000.0), 5_000
    found = device.estimate(rows, window, results)
    load = Workload(windows=window, period=device.circuit.probes, matches=0.05, entries=0.05)
    assert found.cycles == cycles_per_tuple(device.circuit, load)
    assert found.device == pytest.approx(rows * found.cycles / device.mhz / 1e6)
    assert found.seconds == max(found.device, found.link) + found.start
    slow = replace(device, link=replace(device.link, octets_per_s=1e3)).estimate(rows, window, 0)
    assert slow.slowest == "link"
    assert slow.seconds == pytest.approx(
        rows * device.input_octets / device.circuit.per_word / 1e3, rel=0.01
    )
    assert device.estimate(rows, window, results, host=1e3).slowest == "host"


def test_from_as_many_rows_on_as_make_up_for_the_start():
    device = modelled_devices()[0]
    found = device.estimate(100_000, (2_000.0, 2_000.0), 0)
    assert math.isinf(found.pays_from(100_000, found.seconds - found.start))
    least = found.pays_from(100_000, 2 * (found.seconds - found.start))
    assert least == pytest.approx(found.start / ((found.seconds - found.start) / 100_000))
