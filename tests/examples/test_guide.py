# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
import re

from host.operators.windowed import WindowedOperator

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "operators.md"


def programs():
    """Return the programs of the guide that need nothing but the host."""
    found = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    return [text for text in found if "hdl" not in text]


def test_programs_of_the_guide_run_and_print_what_windows_hold(capsys):
    operators = []
    for text in programs():
        names = {}
        exec(compile(text, str(GUIDE), "exec"), names)
        operators += [one for one in names.values() if isinstance(one, WindowedOperator)]
    assert [operator.name for operator in operators] == ["trades", "rides"]
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{end} (7, 9) (2, 22)" for end in range(600, 3601, 300)]


def test_an_operator_of_ones_own_takes_twenty_lines():
    text = next(text for text in programs() if "rides" in text)
    assert len([line for line in text.splitlines() if line]) <= 20
