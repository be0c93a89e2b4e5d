# SPDX-License-Identifier: Apache-2.0
from dataclasses import fields
import inspect

import pytest

from host import UsageError
from host.query.words import RENAMED
import spark_offload
from spark_offload import Options
from spark_offload.__main__ import main

FUNCTIONS = [
    "stream_join", "plan_join", "overlap_join", "asof_join", "plan_asof_join", "join_aggregate",
    "plan_join_aggregate", "stream_aggregate", "plan_aggregate",
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_word_is_answered_with_the_word_of_the_kit(name):
    function = getattr(spark_offload, name)
    words = inspect.signature(function).parameters
    for word in RENAMED.keys() - words.keys():
        with pytest.raises(UsageError, match=f"^{word} is called {RENAMED[word].words[0]}"):
            function(None, None, **{word: "t"})


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "overlap_join"])
def test_time_must_be_given(name):
    with pytest.raises(UsageError, match="^time is missing: the columns that rows arrive by"):
        getattr(spark_offload, name)(None, None, on="t")


@pytest.mark.parametrize("name", ["stream_join", "plan_join"])
def test_an_unknown_option_is_named_with_one_like_it(name):
    function = getattr(spark_offload, name)
    with pytest.raises(
        UsageError, match="^stream_join has no argument partition; write partitions"
    ):
        function(None, None, time="t", rows=1, partition=3)
    with pytest.raises(UsageError, match="no argument colour; its options are suffix, per_window"):
        function(None, None, time="t", rows=1, colour=3)


def test_functions_take_the_options_that_mean_something_to_them():
    with pytest.raises(UsageError, match="^asof_join has no argument device; its options are"):
        spark_offload.asof_join(None, None, time="t", device="software:")
    with pytest.raises(UsageError, match="^stream_aggregate has no argument suffix"):
        spark_offload.stream_aggregate(None, time="t", window=1, aggregates={}, suffix="_r")
    assert Options.of("stream_join", {"strict": True}) == Options(strict=True)
    assert {field.name for field in fields(Options)} > {"device", "partitions", "ordering", "build"}


@pytest.mark.parametrize("word", RENAMED)
def test_the_command_answers_another_word(capsys, word):
    option = f"--{word.replace('_', '-')}"
    with pytest.raises(SystemExit) as ended:
        main(["join", option, "t"])
    assert ended.value.code == 2
    assert f"{option} is called --{RENAMED[word].words[0]}" in capsys.readouterr().err
