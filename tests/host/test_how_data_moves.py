# SPDX-License-Identifier: Apache-2.0
"""The code of docs/how-data-moves.md runs, block after block."""

from pathlib import Path
import re

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-data-moves.md"


def test_the_code_of_the_page_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 6
    names = {"__name__": "page"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "vanishes: its input is SORTED by t" in capsys.readouterr().out
