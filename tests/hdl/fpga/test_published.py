# SPDX-License-Identifier: Apache-2.0
"""The published routing reports say what they are of."""

import json
import re

import pytest

from hdl.fpga.reports import (
    CURRENT,
    REPORTS,
    earlier_design,
    published,
    routed_parameters,
    routing_markdown,
)
from hdl.presets import PRESETS
from tests.conftest import ROOT

PAGE = (ROOT / REPORTS / "index.md").read_text(encoding="utf-8")


def published_reports():
    """The published reports: one that need not be current takes long to hold against its design."""
    return [
        pytest.param(
            path, report, id=path.stem
        )
        for path, report in published(ROOT / REPORTS).items()
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(("path", "report"), published_reports())
def test_a_published_route_is_of_todays_design_or_says_of_which(path, report):
    """After a change of the hardware: `python -m hdl reports`, and `route` for CURRENT."""
    earlier = earlier_design(report)
    if report["preset"] in CURRENT:
        assert earlier is None, "the design has changed: route it anew"
    assert path.with_suffix(".md").read_text() == routing_markdown(report, earlier)


def test_a_report_with_parameters_that_are_none_of_todays_is_of_an_earlier_design():
    parameters = PRESETS["tiny"].words() | {"pipelined": False}
    report = {
        "parameters": parameters, "preset": "tiny", "commit": "abc1234", "design": "e" * 64,
        "device": "lfe5u-85f",
    }  # fmt: skip
    assert routed_parameters(report) is None
    assert earlier_design(report) == "commit abc1234, Verilog eeeeeeeeeeee"
    assert routed_parameters({"parameters": PRESETS["tiny"].words()}) == PRESETS["tiny"]


def test_a_parameter_that_has_one_value_left_makes_no_other_accelerator():
    parameters = PRESETS["tiny"].words() | {"pipelined": True}
    assert routed_parameters({"parameters": parameters}) == PRESETS["tiny"]


@pytest.mark.parametrize("path", list(published(ROOT / REPORTS)), ids=lambda path: path.stem)
def test_the_markdown_of_a_published_route_is_that_of_its_json(path):
    report, text = json.loads(path.read_text()), path.with_suffix(".md").read_text()
    named = re.search(r"\*\*Of an earlier design\*\* \((.*?)\):", text)
    assert text == routing_markdown(report, named and named[1])


def routed(commands):
    """Return the seeds that commands route, all in one or some at a time, and what they route."""
    seeds, rest = set(), set()
    for command in commands.split("; "):
        options = dict(re.findall(r"--(seed|seeds) (\d+)", command))
        first = int(options.get("seed", 1))
        seeds |= set(range(first, first + int(options.get("seeds", 1))))
        # What is measured beside a route is no part of it.
        rest.add(re.sub(r" --(seed \d+|seeds \d+|jobs \d+|add|measured \S+)(?= |$)", "", command))
    return seeds, rest


def test_a_route_with_the_locked_packages_is_what_the_command_of_the_page_gives():
    reports = published(ROOT / REPORTS).values()
    assert {report["preset"] for report in reports} >= set(CURRENT)
    locked = [
        report
        for report in reports
        if all(router["locked"] for router in [report["synthesis"], *report["routers"]])
    ]
    assert {report["preset"] for report in locked} >= set(CURRENT)
    assert locked
    told = re.findall(r"^\$ \.venv/bin/(python -m hdl route .*)", PAGE, re.MULTILINE)
    told = [routed(command) for command in told]
    assert all(routed(report["command"]) in told for report in locked)
