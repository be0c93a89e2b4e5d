# SPDX-License-Identifier: Apache-2.0
"""Help texts name other commands by the way in which the command itself was called."""

import argparse

import pytest

import hdl.__main__
import sim.__main__


def helps(parser):
    """Yield the help text of a parser and of all its subcommands."""
    yield parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from helps(command)


@pytest.mark.parametrize(("module", "package"), [(hdl.__main__, "hdl"), (sim.__main__, "sim")])
def test_help_of_an_installed_command_names_installed_commands(module, package):
    texts = [" ".join(text.split()) for text in helps(module.parser(f"splitjoin {package}"))]
    assert len(texts) > 5
    assert not [text for text in texts if "python -m" in text]


@pytest.mark.parametrize("caller", ["python -m", "splitjoin"])
def test_routes_and_netlists_send_to_each_other(caller):
    routes, netlists = (
        " ".join(" ".join(helps(module.parser(f"{caller} {package}"))).split())
        for module, package in ((hdl.__main__, "hdl"), (sim.__main__, "sim"))
    )
    assert routes.count(f"`{caller} sim saturate`") == 1
    assert f"`{caller} hdl route`" in netlists
