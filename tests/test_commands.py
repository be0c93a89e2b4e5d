# SPDX-License-Identifier: Apache-2.0
"""The help of every command: an example that runs, options in groups, a meaning for each option."""

from pathlib import Path
import shlex

import pytest

import hdl.__main__
import host.__main__
from tools.reference import commands_of, example_of, groups_of, parsers

#: Options that a command may have without groups: they are read at a glance.
FEW = 6

COMMANDS = [(top, command) for top in parsers() for command in commands_of(top)]
NAMES = [command.prog for _, command in COMMANDS]


def words_behind(parser, command):
    """Return the words of a command's example behind those that call the parser."""
    words = shlex.split(example_of(command).replace("\\\n", " "))
    name = parser.prog.split()
    assert words[: len(name)] == name
    return words[len(name) :]


@pytest.mark.parametrize(("top", "command"), COMMANDS, ids=NAMES)
def test_a_command_has_an_example_that_its_parser_takes(top, command):
    assert words_behind(command, command) is not None
    top.parse_args(words_behind(top, command))
    assert command.format_help().rstrip().endswith(example_of(command))


@pytest.mark.parametrize(("_", "command"), COMMANDS, ids=NAMES)
def test_options_say_what_they_mean_and_are_in_groups(_, command):
    groups = groups_of(command)
    assert [action.dest for shown in groups.values() for action in shown if not action.help] == []
    number = sum(map(len, groups.values()))
    loose = [action.dest for action in groups.get("options", ())]
    assert number <= FEW or loose == [], "argument groups make a long list readable"


def test_an_example_keeps_its_lines_and_other_texts_do_not(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    join = COMMANDS[NAMES.index("python -m host join")][1]
    text, _, example = join.format_help().partition("example:")
    assert max(map(len, text.split("\n\n")[1].splitlines())) < 60
    assert example.count(" \\\n") == 1


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the examples, in the folder that is the current one."""
    monkeypatch.chdir(tmp_path)
    rows = ((1, "A", 100), (4, "B", 70), (9, "A", 90))
    for name, later in (("trades", 0), ("quotes", 1)):
        lines = [f"2026-01-02 12:00:{at + later:02},{symbol},{price}" for at, symbol, price in rows]
        (tmp_path / f"{name}.csv").write_text("\n".join(["time,symbol,price", *lines]) + "\n")


#: Commands whose examples take moments and need nothing else; the others build or route something.
QUICK = [
    (module, top, command)
    for top, command in COMMANDS
    for module in (host, hdl)
    if command.prog.startswith(f"python -m {module.__name__} ")
    and command.prog.split()[-1]
    in {"join", "asof", "aggregate", "devices", "selftest", "types", "presets", "boards"}
]


@pytest.mark.parametrize(
    ("module", "top", "command"), QUICK, ids=[command.prog for *_, command in QUICK]
)
def test_an_example_runs(module, top, command, files, capsys):
    assert module.__main__.main(words_behind(top, command)) == 0
    output = getattr(top.parse_args(words_behind(top, command)), "output", None)
    if output is None:
        assert capsys.readouterr().out
    else:
        assert Path(output).stat().st_size > 0
