# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/tutorial-spark.md run, block after block."""

import re

import pytest

from spark_offload import explain


def run(root, *, simulated):
    """Run the blocks; return the names that they have bound."""
    page = root / "docs" / "tutorial-spark.md"
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    on_accelerator = [block for block in blocks if "simulated" in block]
    assert (len(blocks), len(on_accelerator)) == (5, 1)
    names = {}
    for block in blocks:
        if simulated or block not in on_accelerator:
            exec(compile(block, str(page), "exec"), names)
    return names


def test_programs_without_an_accelerator_run(spark, root, capsys):
    names = run(root, simulated=False)
    count = names["pairs"].count()
    assert count > 100
    printed = capsys.readouterr().out
    assert f"{count} pairs" in printed
    assert f"All {count:,}" in printed


@pytest.mark.long
def test_the_whole_tutorial_runs_on_the_simulated_accelerator(spark, root):
    names = run(root, simulated=True)
    assert explain(names["simulated"]).device.startswith("sim:")
