# SPDX-License-Identifier: Apache-2.0
from host.__main__ import main
from host.cli.types import table


def test_the_page_is_what_the_command_prints(root, capsys):
    assert main(["types"]) == 0
    assert capsys.readouterr().out.strip() == table()
    assert table() in (root / "docs" / "types.md").read_text()


def test_the_table_says_what_the_planning_says():
    rows = {line.split("|")[1].strip(): line for line in table().splitlines()[2:]}
    marks = {name: [cell.strip() for cell in line.split("|")[4:7]] for name, line in rows.items()}
    assert marks["int8 to int64"] == ["yes", "yes", "yes"]
    assert marks["string"] == ["yes", "-", "-"]
    assert marks["float, double"] == ["yes", "yes", "-"]
    assert marks["decimal"] == ["yes", "yes", "-"]
    assert marks["list, struct, map"] == ["-", "-", "-"]
