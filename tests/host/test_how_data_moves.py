# SPDX-License-Identifier: Apache-2.0
"""The code of docs/how-data-moves.md runs, and rows take the road that it shows."""

import importlib
from pathlib import Path
import re
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from host import open_device
from host.query.queries import Query
from host.session.join import join_tables
from tests.host.small_bundles import BUNDLES, write_manifest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-data-moves.md"
#: Classes that the page may name: more would be no road, but a map.
MOST = 12
#: What a class is asked to do with rows, by its name in the page.
STEPS = {
    "ArrowSource": "execute",
    "PairedIntake": "take",
    "Staging": "offer",
    "Device": "exchange",
    "ResultDecoder": "decode",
    "StrictOrder": "push",
    "Execution": "advance",
    "SoftwareEngine": "push",
    "SoftwareRun": "advance",
    "Completion": "complete",
    "JoinStream": "execute",
}
IN_WORDS = (
    "ArrowSource", "PairedIntake", "Staging", "Device", "ResultDecoder", "StrictOrder",
    "Completion", "Execution", "JoinStream",
)  # fmt: skip
#: The engine has answered before the intake finds that there is nothing more.
IN_SOFTWARE = (
    "ArrowSource", "SoftwareEngine", "PairedIntake", "Completion", "SoftwareRun", "JoinStream",
)  # fmt: skip


def test_the_code_of_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 7
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "vanishes: its input is SORTED by t" in capsys.readouterr().out


def classes_of_the_page():
    """Return the classes that the page names, in its order."""
    section = PAGE.read_text().split("## The road of a row")[1].split("\n## ")[0]
    found = re.findall(r"^\| `([\w.]+)\.(\w+)` \|", section, re.MULTILINE)
    return [getattr(importlib.import_module(module), name) for module, name in found]


def finished(device, how):
    """Return the names of the page's classes in the order in which a join is done with them."""
    known = {
        getattr(each, STEPS[each.__name__]).__code__: each.__name__
        for each in (*classes_of_the_page(), type(device))
        if each.__name__ in STEPS
    }
    known[type(device).exchange.__code__] = "Device"
    last = {}

    def see(frame, event, _):
        name = known.get(frame.f_code)
        if event == "return" and name is not None:
            last.pop(name, None)
            last[name] = True

    times = np.arange(200)
    left, right = (pa.table({"t": times, "x": times % values}) for values in (7, 5))
    before = sys.getprofile()
    threading.setprofile(see)
    sys.setprofile(see)
    try:
        join_tables(left, right, Query(time="t", on="x", within=3, how=how), device)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return tuple(last)


def test_the_page_names_a_road_that_one_can_remember():
    classes = classes_of_the_page()
    assert [each.__name__ for each in classes] == [*STEPS]
    assert len(classes) <= MOST
    drawn = (PAGE.parent / "images" / "host.svg").read_text()
    assert [name for name in STEPS if f">{name}</text>" not in drawn] == []


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_row_takes_the_road_of_the_page(tmp_path, how):
    folder = write_manifest(BUNDLES["tiny"].with_(sub_window=64, timestamp_bits=16), tmp_path / "b")
    one_sided = {"Completion"} if how == "inner" else set()
    for uri, road in ((f"software:{folder}", IN_WORDS), ("software:", IN_SOFTWARE)):
        with open_device(uri) as device:
            assert finished(device, how) == tuple(name for name in road if name not in one_sided)
