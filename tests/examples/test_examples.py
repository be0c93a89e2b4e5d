# SPDX-License-Identifier: Apache-2.0

from collections import Counter
import importlib
from itertools import combinations
from pathlib import Path
import runpy
import subprocess
import sys

from amaranth import Signal
from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pytest

from examples import (
    count_by_map,
    forward,
    longest_tweet,
    longest_tweet_by_map,
    paircount,
    scalejoin,
    wordcount,
)
from examples.words import MOST, TWEETS, WORD_BITS, Vocabulary, hashtags_of, words_of
from hdl.expressions import lower
from hdl.windowed.description import load_operator
from host.operators.meaning import reference_results
from host.operators.operate import OperatorQuery, operate_tables
from host.operators.windowed import WindowedOperator
from host.reference.operator import Arrival

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("words", "__init__")
)
OPERATORS = [
    f"examples.{name}:{found}"
    for name in FILES
    for found, value in vars(importlib.import_module(f"examples.{name}")).items()
    if isinstance(value, WindowedOperator)
]

few = settings(max_examples=15)
WORD = st.sampled_from(["#red", "#pink", "so", "hi", "#red", "blue", "a"])
STEPS = st.tuples(st.integers(0, 45), st.lists(WORD, max_size=MOST).map(" ".join))
TEXTS = st.lists(STEPS, max_size=10)


def timed(steps):
    """Return (time, text) from (time since the text before, text)."""
    time, texts = 0, []
    for step, text in steps:
        time += step
        texts.append((time, text))
    return texts


def ends(operator, time):
    """Return the right boundaries of the windows that a time is in, by their definition."""
    latest = time + operator.size
    return [end for end in range(time + 1, latest + 1) if end % operator.advance == 0]


def windows(operator, values):
    """Return the values of each (end, key), from (time, key, value)."""
    found = {}
    for time, key, value in values:
        for end in ends(operator, time):
            found.setdefault((end, key), []).append(value)
    return found


def named(results, names):
    """Return {(end, *words): value} and require that no result comes twice."""
    found = {(r.timestamp, *map(names.word, r.key)): r.values[0] for r in results}
    assert len(found) == len(results)
    return found


def both_ways(operator, arrivals):
    """Return the results of the reference, which those on arrays must equal."""
    arrivals = list(arrivals)
    results = reference_results(operator, arrivals)
    columns = {f.name: [a.payload[f.name] for a in arrivals] for f in operator.fields}
    table = pa.table({"timestamp": [a.timestamp for a in arrivals], **columns})
    schema = pa.schema([(name, pa.int64()) for name in table.column_names])
    got = operate_tables([table.cast(schema)], OperatorQuery(operator))
    assert list(zip(*map(pa.ChunkedArray.to_pylist, got.columns[1:]), strict=True)) == [
        (result.timestamp, *result.key, *result.values) for result in results
    ]
    return results


@few
@given(TEXTS.map(timed))
def test_longest_tweet_of_each_hashtag_with_and_without_a_map(texts):
    expected = windows(
        longest_tweet.OPERATOR,
        [(time, tag, len(text)) for time, text in texts for tag in hashtags_of(text)],
    )
    expected = {place: max(values) for place, values in expected.items()}
    names = Vocabulary()
    arrivals = names.arrivals((time, text, hashtags_of(text)) for time, text in texts)
    assert named(both_ways(longest_tweet.OPERATOR, arrivals), names) == expected
    names = Vocabulary()
    mapped = longest_tweet_by_map.mapped([(time, "", text) for time, text in texts], names)
    assert named(both_ways(longest_tweet_by_map.OPERATOR, mapped), names) == expected


@few
@given(TEXTS.map(timed))
def test_words_are_counted_by_texts_and_by_occurrences(texts):
    names = Vocabulary()
    arrivals = names.arrivals((time, text, words_of(text)) for time, text in texts)
    sets = [(time, word, 1) for time, text in texts for word in set(words_of(text))]
    expected = {place: len(ones) for place, ones in windows(wordcount.OPERATOR, sets).items()}
    assert named(both_ways(wordcount.OPERATOR, arrivals), names) == expected
    names = Vocabulary()
    mapped = both_ways(count_by_map.WORDS, count_by_map.mapped_words(texts, names))
    lists = [(time, word, 1) for time, text in texts for word in words_of(text)]
    expected = {place: len(ones) for place, ones in windows(count_by_map.WORDS, lists).items()}
    assert named(mapped, names) == expected


@few
@given(TEXTS.map(timed))
def test_pairs_of_words_are_counted_up_to_their_distance(texts):
    def pairs(text):
        numbered = list(enumerate(words_of(text)))
        close = combinations(numbered, 2)
        return [(a, b) for (i, a), (j, b) in close if j - i <= paircount.DISTANCE]

    names = Vocabulary()
    arrivals = names.arrivals((time, text, words_of(text)) for time, text in texts)
    for operator, tuples, kind in (
        (paircount.OPERATOR, arrivals, set),
        (count_by_map.PAIRS, count_by_map.mapped_pairs(texts, names, paircount.DISTANCE), list),
    ):
        found = [(time, pair, 1) for time, text in texts for pair in kind(pairs(text))]
        expected = {
            (end, *pair): len(ones) for (end, pair), ones in windows(operator, found).items()
        }
        assert named(both_ways(operator, tuples), names) == expected


@few
@given(st.lists(st.tuples(st.integers(0, 80), st.integers(0, 1), st.integers(0, 30),
                          st.integers(0, 30)), max_size=30))  # fmt: skip
def test_scalejoin_finds_each_close_pair_of_a_window_once(steps):
    time, arrivals = 0, []
    for step, side, x, y in steps:
        time += step
        arrivals.append(Arrival(time, {"x": x, "y": y}, side))
    expected = Counter()
    for one, other in combinations(arrivals, 2):
        left, right = (one, other) if one.input == 0 else (other, one)
        close = all(abs(left.payload[f] - right.payload[f]) <= 10 for f in "xy")
        if one.input != other.input and close and other.timestamp - one.timestamp < 300:
            expected[other.timestamp + 1, *left.payload.values(), *right.payload.values()] += 1
    results = reference_results(scalejoin.OPERATOR, arrivals)
    assert Counter((result.timestamp, *result.values) for result in results) == expected


def test_forward_puts_every_tuple_out_for_each_core():
    arrivals = [Arrival(time, {"payload": -time}, time % 2) for time in range(20)]
    results = reference_results(forward.OPERATOR, arrivals)
    assert [(r.timestamp, r.key, r.values) for r in results] == [
        (time + 1, (core,), (-time,)) for time in range(20) for core in range(forward.CORES)
    ]


def test_the_tweets_of_the_seed_give_its_results():
    names = Vocabulary()
    tuples = names.arrivals((time, text, hashtags_of(text)) for time, _, text in TWEETS[:2])
    results = named(reference_results(longest_tweet.OPERATOR, tuples), names)
    assert results[600, "red"] == results[600, "pink"] == 13


def test_a_text_with_too_many_words_is_refused():
    with pytest.raises(ValueError, match="A tuple has room for 8 words, but 'long' has more"):
        list(Vocabulary().arrivals([(0, "long", ["w"] * 9)]))


def test_more_words_than_a_number_has_are_refused():
    names = Vocabulary()
    numbers = [names.number(f"w{n}") for n in range(1 << WORD_BITS)]
    assert names.number("w5") == numbers[5] == 5
    with pytest.raises(ValueError, match="'more' is a word too many for numbers of 6 bits"):
        names.number("more")


@pytest.mark.parametrize("reference", OPERATORS)
def test_generator_loads_each_operator_and_lowers_its_expressions(reference):
    description = load_operator(reference)
    fields = {f.name: Signal(f.bits) for f in (*description.fields, *description.right_fields)}
    sides = {"l": description.fields, "r": description.right_fields}
    pairs = {f"{side}.{f.name}": Signal(f.bits) for side, own in sides.items() for f in own}
    values = {"timestamp": Signal(32), **fields, **pairs}
    texts = [text for key in description.keys for text in (*key.parts, key.when or "1")]
    for text in [*texts, *(one.value for one in description.reductions)]:
        assert len(lower(text, values)) >= 1


@pytest.mark.parametrize("name", FILES)
def test_each_example_runs_as_a_program(name, capsys):
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out


def test_an_example_runs_from_the_root_of_the_repository():
    done = subprocess.run(
        [sys.executable, "-m", "examples.longest_tweet"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "600 pink 13\n600 red 13\n" in done.stdout


def test_examples_are_short():
    for name in FILES:
        assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) <= 62, name
