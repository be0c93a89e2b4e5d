# SPDX-License-Identifier: Apache-2.0
"""Figures that pages state: latencies are those of the components, the README's are measured."""

import re

import pytest

from hdl.accelerator import Accelerator
from hdl.index.chain_walker import ChainWalker
from hdl.presets import PRESETS


def accelerators(engine):
    """Presets with this engine."""
    return [
        name
        for name, parameters in PRESETS.items()
        if (parameters.engine.kind == "index") == (engine == "index")
    ]


#: One of each kind: plain, with lanes, with digests, with those of a band, without timestamps, and
#: one that aggregates matches.
SCANS = (
    "tiny", "demo", "ecp5-equality", "ecp5-band-digest-timed", "board-small", "tiny-join-aggregate"
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name not in SCANS))
        for name in accelerators("scan")
    ],
)
def test_latencies_in_the_table_are_those_of_the_components(root, name):
    page = (root / "docs" / "scan-engine.md").read_text()
    table = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (\d+)[^|]*\|", page, re.MULTILINE))
    stated = {component: int(latency) for component, latency in table.items()}
    dut = Accelerator(PRESETS[name])
    core = dut.cores[0]
    levels = dut.distribution.latency + dut.gathering[0].latency
    more = 3 if PRESETS[name].engine.lanes > 1 else 0  # "3 more with several lanes,
    digest_bits, band = PRESETS[name].engine.digest_bits, PRESETS[name].predicate.kind == "band"
    more += 6 if digest_bits else 0  # 6 more with digests,
    more += 1 if digest_bits and band else 0  # 7 with those of a band",
    more += 3 if PRESETS[name].is_aggregated else 0  # and "3 more than in a join"
    cells = 3 if digest_bits and band else 0  # "3 more with digests of a band"
    timed = PRESETS[name].timestamp_bits > 0  # "1 more with timestamps", twice in an accelerator
    assert stated == {
        "Ingress": dut.ingress.latency - timed - cells,
        "JoinCore": core.latency - more - timed,
        "Region": core.regions[0].latency - more - timed,
        "Combiner": dut.leaving.latency,
        "Accelerator": dut.latency - levels - more - cells - 2 * timed,
    }


@pytest.mark.parametrize("name", accelerators("index"))
def test_latencies_of_the_index_are_those_of_its_page(root, name):
    page = (root / "docs" / "index-engine.md").read_text()
    star = "has its star (\\d+) cycles after the probe went into the region"
    walk = "A walk adds 3\\s+cycles and (\\d+) for"
    latency = Accelerator(PRESETS[name]).cores[0].regions[0].latency
    latency -= PRESETS[name].predicate.kind == "band"  # "1 more for a band,
    latency -= PRESETS[name].timestamp_bits > 0  # 1 more with timestamps"
    assert re.findall(star, page) == [str(latency)]
    assert re.findall(walk, page) == [str(ChainWalker.CIRCLE)]


def test_the_figures_of_the_readme_are_measured(root):
    section = (root / "README.md").read_text().split("## Measured")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    stated = [re.findall(r"\*\*([\d.,e]+)\*\*", row) for row in rows]
    assert len(rows) == 6
    assert all(stated)
    measured = (root / "docs" / "measured.md").read_text()
    missing = [
        number
        for numbers in stated
        for number in numbers
        if not re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", measured)
    ]
    assert missing == []
