# SPDX-License-Identifier: Apache-2.0
"""The way of a tuple in docs/architecture.md: eight files, whose cycles add up to the latency."""

import importlib
from pathlib import Path
import re

from hdl.accelerator import Accelerator
from hdl.presets import PRESETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
#: Files that a reader has to open at the most.
MOST = 8


def rows_of_the_page():
    """Return file, class and cycles of each row, in the order of the page."""
    section = PAGE.read_text("utf-8").split("## The way of a tuple")[1].split("\n<!--")[0]
    return [
        (file, name, int(cycles))
        for file, name, cycles in re.findall(
            r"^\| `([\w/]+\.py)`, `(\w+)`.*\| (\d+)[^|]*\|$", section, re.MULTILINE
        )
    ]


def test_the_way_names_what_the_accelerator_is_made_of():
    rows = rows_of_the_page()
    assert len(rows) == len({file for file, *_ in rows}) == MOST
    top = Accelerator(PRESETS["demo"])
    core = top.cores[0]
    region = core.regions[0]
    engine = region._engine
    parts = [
        (top, top.latency - sum(part.latency for part in (
            top.ingress, top.distribution, core, top.gathering[0], top.leaving.combiner))),
        (top.ingress, top.ingress.latency),
        (top.distribution, top.distribution.latency),
        (core, core.latency - region.latency),
        (region, region.latency - engine.latency),
        (engine, engine.latency),
        (top.gathering[0], top.gathering[0].latency),
        (top.leaving.combiner, top.leaving.combiner.latency),
    ]  # fmt: skip
    for (file, name, cycles), (part, counted) in zip(rows, parts, strict=True):
        module = importlib.import_module(f"hdl.{file.removesuffix('.py').replace('/', '.')}")
        assert isinstance(part, getattr(module, name)), name
        assert cycles == counted, name
    assert sum(cycles for *_, cycles in rows) == top.latency
