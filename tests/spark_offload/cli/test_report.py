# SPDX-License-Identifier: Apache-2.0
"""Figures and report say what was measured, and open offline."""

from dataclasses import replace
from html.parser import HTMLParser
import re
from types import SimpleNamespace

import numpy as np
import pytest

from host.protocol.modelled import modelled_devices
from host.query.cores import Observation
from host.session.records import CoreChange, ElasticRecord, PeriodChange, PrecisionRecord
from spark_offload import JoinMetrics, TaskMetrics
from spark_offload.cli.demo import Benchmark, estimated
from spark_offload.cli.join import Joined
from spark_offload.cli.report import Run, derive_figures, percentile, stages, write_report
from spark_offload.measures import cumulative_counts, histogram

#: What of a plan is told in a report.
PLAN = SimpleNamespace(
    manifest=SimpleNamespace(engine="scan", storage=SimpleNamespace(cores=4, lanes=4), probes=8),
    explanation="device  sim:x",
)


def example(*, metrics=None, **changes):
    """Return a run with made-up figures."""
    rng = np.random.default_rng(1)
    task = TaskMetrics(
        partition=0,
        left_rows=20_000,
        right_rows=20_000,
        results=1_183,
        seconds=2.5,
        device_seconds=2.0,
        cycles=1_100_000,
        counters={
            "cycles": 1_100_000,
            "comparisons": 260_000_000,
            "region_busy": 8_140_000,
            "region_stalled": 44_000,
            "ingress_busy": 40_010,
            "ingress_stalled": 1_040_000,
            "output_busy": 6_200,
            "output_stalled": 800,
        },
        latency=histogram(rng.gamma(4, 300, 1_183)),
        timeline=cumulative_counts(np.sort(rng.integers(0, 1_100_000, 1_183)), 1_100_000),
    )
    settings = {
        "title": "SplitJoin <simulated>",
        "question": "Which & why",
        "joined": Joined(PLAN, metrics or JoinMetrics((task,)), (20_000, 20_000), 1_183, 4.0, None),
        "check": "All 1,183 rows agree",
        "agrees": True,
        "check_seconds": 9.0,
    }
    return Run(**{**settings, **changes})


class Checker(HTMLParser):
    """Collects what a page refers to, and whether its elements are closed."""

    VOID = {"meta", "br", "link", "img", "input"}

    def __init__(self):
        super().__init__()
        self.open, self.references = [], []

    def handle_starttag(self, tag, attrs):
        self.references += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_report_is_one_offline_file(tmp_path):
    path = tmp_path / "build" / "report.html"
    write_report(example(), path)
    text = path.read_text()
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.references == []
    assert not re.search(r"https?://|url\(|@import", text)
    assert "SplitJoin &lt;simulated&gt;" in text
    assert text.count("<svg") == 4
    assert "prefers-color-scheme: dark" in text
    assert [entry.name for entry in path.parent.iterdir()] == ["report.html"]


def test_a_run_without_a_clock_draws_nothing(tmp_path):
    nothing = example(metrics=JoinMetrics(), agrees=None, check_seconds=None)
    write_report(nothing, tmp_path / "report.html")
    assert "<svg" not in (tmp_path / "report.html").read_text()


def test_the_same_join_elsewhere_is_drawn_from_zero(tmp_path):
    run = example(software_seconds=1.0)
    assert dict(derive_figures(run))["Time on the software engine"] == "1.00 s"
    write_report(run, tmp_path / "report.html")
    section = (tmp_path / "report.html").read_text().split("The same join elsewhere")[1]
    bars = re.findall(r'class="bar" [^>]* width="([\d.]+)"', section.split("</section>")[0])
    this, software, spark = map(float, bars)
    assert (this / spark, software / spark) == pytest.approx((4 / 9, 1 / 9), rel=0.01)


def test_devices_of_the_cost_model_stand_beside_what_was_measured(tmp_path):
    benchmark = Benchmark(rows=20_000, window=8_192)
    devices = [one for one in modelled_devices() if one.capacity >= benchmark.window]
    assert len(devices) >= 3
    estimates = [estimated(benchmark, one, 1_183) for one in devices]
    for one, (_, seconds, terms) in zip(devices, estimates, strict=True):
        cycles = float(terms.split()[0])
        assert seconds == pytest.approx(40_000 * cycles / (1e6 * one.mhz), rel=0.01)
        assert ("routed for" in one.clock) != ("assumed" in one.clock)
    run = example(estimates=estimates)
    assert (
        f"{1e3 * estimates[0][1]:.3g} ms"
        in dict(derive_figures(run))[f"By the cost model, {devices[0].name}"]
    )
    write_report(run, tmp_path / "report.html")
    section = (tmp_path / "report.html").read_text().split("The same join elsewhere")[1]
    section = section.split("</section>")[0]
    assert section.count('class="bar"') == 2 + len(devices)
    assert all(terms in section for *_, terms in estimates)
    _, smaller, _ = estimated(Benchmark(rows=20_000, window=1_000), devices[0], 100)
    assert smaller < estimates[0][1] / 4


def test_figures_are_derived_from_the_counters():
    figures = dict(derive_figures(example()))
    assert figures["Cycles per tuple"] == "27.5"
    assert figures["Comparisons per cycle"] == "236.36"
    assert figures["Cycle efficiency"] == "92.3 %"
    assert figures["Tuples/s, whole join"] == "10,000"
    ingress, regions, output = stages(example().joined)
    assert (ingress.busy, ingress.idle) == (40_010, 1_100_000 - 40_010 - 1_040_000)
    assert regions.idle == 8 * 1_100_000 - 8_140_000 - 44_000
    assert output.name == "Output"


def test_what_the_cycles_take_in_hardware_is_told_where_it_is_known(tmp_path):
    assert "In hardware" not in dict(derive_figures(example()))
    metrics = replace(example().joined.metrics, hardware="1,100,000 cycles: 7.7 ms at <142.0> MHz")
    run = example(metrics=metrics)
    assert dict(derive_figures(run))["In hardware"] == metrics.hardware
    write_report(run, tmp_path / "report.html")
    assert "7.7 ms at &lt;142.0&gt; MHz" in (tmp_path / "report.html").read_text()
    assert str(metrics).splitlines()[-1] == f"hardware: {metrics.hardware}"
    assert "hardware: 1,100,000 cycles" in metrics._repr_html_()


@pytest.mark.parametrize("values", [[], [0], [1, 1, 700, 50_000, 2**40]])
def test_histogram_keeps_every_value_to_a_4096th(values):
    bins = histogram(np.array(values))
    assert sum(bins.values()) == len(values)
    for value, low in zip(sorted(values), np.repeat(list(bins), list(bins.values())), strict=True):
        assert low <= value <= low + low / 4096


def test_percentiles():
    assert percentile({}, 0.5) == 0
    assert percentile({1: 1, 5: 98, 9: 1}, 0.5) == 5
    assert percentile({1: 1, 5: 98, 9: 1}, 1.0) == 9


def test_cumulative_counts_end_with_all():
    assert cumulative_counts(np.array([3, 9, 4]), 20, points=2) == ((10, 3), (20, 3))
    assert cumulative_counts(np.array([]), 0) == ()


def test_an_adaptive_period_is_drawn_with_its_changes(tmp_path):
    record = PrecisionRecord("0.25 tuples per cycle", bound=16, first=8)
    for held in (True, False, True):
        record.judge(held=held)
    record.change(PeriodChange(300_000, 9_000, 13))
    record.change(PeriodChange(600_000, 21_000, 4))
    (task,) = example().joined.metrics.tasks
    metrics = JoinMetrics((replace(task, precision=record),))
    path = tmp_path / "report.html"
    write_report(example(metrics=metrics), path)
    page = path.read_text("utf-8")
    Checker().feed(page)
    assert "Ordering period over time" in page
    assert "0.25 tuples per cycle held in 2 of 3 measurements" in page
    for cycle, period in ((0, 8), (300_000, 13), (600_000, 4), (1_100_000, 4)):
        place = f"{cycle / 1000:.4g} k" if cycle else "0"
        place = place if cycle < 1_000_000 else "1.1 M"
        assert f"{place} cycles: {period} probes per star" in page
    assert "held in 2 of 3" in str(metrics)
    write_report(example(), path)
    assert "Ordering period" not in path.read_text("utf-8")


def test_the_active_cores_of_an_elastic_task_are_drawn(tmp_path):
    record = ElasticRecord("threshold 90/70/45 %", 8, cycles=1_100_000, core_cycles=6_600_000)
    for cycle, arrived in ((200_000, 300), (400_000, 90), (600_000, 80)):
        record.cycles = cycle
        record.observe(
            Observation(cores=8, least=1, cycles=1_000, busy=0, tuples=arrived, arrived=arrived)
        )
    record.cycles = 1_100_000
    record.change(CoreChange(600_000, 21_000, (0, 1, 2)))
    (task,) = example().joined.metrics.tasks
    metrics = JoinMetrics((replace(task, elastic=record),))
    path = tmp_path / "report.html"
    write_report(example(metrics=metrics), path)
    page = path.read_text("utf-8")
    Checker().feed(page)
    assert "Active cores and input rate over time" in page
    assert "8 cores at first, 3 at last, 1 changes; 25% of the core cycles saved" in page
    for place, cores in (("0", 8), ("600 k", 8), ("600 k", 3), ("1.1 M", 3)):
        assert f"{place} cycles: {cores} active cores" in page
    assert "400 k cycles: 90 tuples per 1,000 cycles" in page
    assert "elastic: threshold 90/70/45 %" in str(metrics)
    write_report(example(), path)
    assert "Active cores" not in path.read_text("utf-8")
