# SPDX-License-Identifier: Apache-2.0
"""Options of the command line that describe accelerators."""

import argparse

import pytest

from hdl.options import add_parameter_options, parameters_from
from hdl.tree import tree_levels


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_parameter_options(parser)
    return parameters_from(parser.parse_args(words), aggregates=True)


@pytest.mark.parametrize("cores", [1, 2, 3, 9, 28])
@pytest.mark.parametrize("preset", ["tiny", "tiny-aggregate"])
def test_a_tree_of_so_many_levels_has_the_smallest_arity(preset, cores):
    words = ("--preset", preset, "--cores", str(cores))
    if preset == "tiny-aggregate" and cores > 2:
        words = ("--preset", "ecp5-aggregate", "--cores", str(cores))
    found = parsed(*words, "--fan-out", "levels:2", "--fan-in", "levels:1")
    assert found.fan_in == max(2, cores)
    assert len(tree_levels(cores, found.fan_out)) <= 2
    assert found.fan_out == 2 or len(tree_levels(cores, found.fan_out - 1)) > 2


def test_the_cores_are_those_of_the_preset_if_none_are_given():
    assert parsed("--preset", "paper", "--fan-out", "levels:2").fan_out == 4
    assert parsed("--preset", "paper", "--fan-out", "3").fan_out == 3


@pytest.mark.parametrize("text", ["levels:0", "levels:", "four", "-1"])
def test_another_word_is_refused(text, capsys):
    with pytest.raises(SystemExit):
        parsed(f"--fan-out={text}")
    assert f"expected N or levels:N, not {text!r}" in capsys.readouterr().err
