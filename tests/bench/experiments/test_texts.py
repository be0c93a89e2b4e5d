# SPDX-License-Identifier: Apache-2.0
"""Texts with many keys: what is drawn, what is counted, and what the figure says of it."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from bench.experiments.commands import write
from bench.experiments.sweep import prepare, sweep
from bench.experiments.texts import (
    DISTANCES,
    KEY_BITS,
    LONGEST,
    SOURCES,
    TextPoint,
    Texts,
    address,
    check_values,
    counting,
    english,
    hashtags,
    longest,
    text_plots,
    texts_with_each_key,
    windows_of_texts,
)

PIECES = 22
"""Of the address, at most 16 words each."""


def test_english_has_few_frequent_words_and_many_rare_ones():
    texts = english(4000, vocabulary=1 << 12, most=16)
    inside = np.arange(16) < texts.lengths[:, None]
    counts = np.bincount(texts.words[inside], minlength=1 << 12)
    assert texts.lengths.min() == 4
    assert texts.lengths.max() == 16
    assert (texts.words[~inside] == 0).all()
    share = np.cumsum(counts) / counts.sum()
    assert counts.argmax() < 3
    # By the law with its shift: of words in English, a tenth of the vocabulary makes two thirds.
    assert 0.6 < share[409] < 0.75
    assert (english(4000, vocabulary=1 << 12, most=16).words == texts.words).all()


def test_the_address_is_cut_at_sentences_and_its_words_are_numbered_by_frequency():
    texts = address(60, vocabulary=1 << 14, most=16)
    assert texts.lengths[:3].tolist() == [16, 14, 16]  # "Four score …" has 30 words
    assert texts.lengths[:PIECES].sum() == 272
    assert (texts.words[:PIECES] == texts.words[PIECES : 2 * PIECES]).all()
    assert texts.chars[1] == len(
        "conceived in liberty and dedicated to the proposition that all men are created equal"
    )
    inside = np.arange(16) < texts.lengths[:PIECES, None]
    counts = np.bincount(texts.words[:PIECES][inside])
    assert (np.diff(counts) <= 0).all()
    assert counts[0] == 13  # "that"


def test_words_beyond_the_vocabulary_leave_a_text():
    texts = Texts(
        np.array([[5, 1, 9, 0], [9, 9, 0, 0]]), np.array([4, 2]), np.array([20, 9])
    ).within(6)
    assert texts.words.tolist() == [[5, 1, 0, 0], [0, 0, 0, 0]]
    assert texts.lengths.tolist() == [3, 0]
    assert texts.chars.tolist() == [20, 9]


def fields_of(operator, texts):
    columns = texts.columns()
    return {field.name: columns[field.name] for field in operator.fields}


def test_the_longest_tweet_of_a_hashtag_is_that_of_all_tweets_with_it():
    tweets = hashtags(40, vocabulary=8, most=3)
    assert set(tweets.lengths.tolist()) == {1, 2, 3}
    assert tweets.chars.max() <= 280
    operator, times = longest(most=3, bits=3), np.arange(40) // 10
    columns = fields_of(operator, tweets)
    found = windows_of_texts(operator, times, columns)
    expected, counts = {}, {}
    for n, (row, length) in enumerate(zip(tweets.words.tolist(), tweets.lengths, strict=True)):
        for end in (n // 10 + 1, n // 10 + 2):
            for tag in set(row[:length]):
                expected[end, tag] = max(expected.get((end, tag), 0), tweets.chars[n])
                counts[end, tag] = counts.get((end, tag), 0) + 1
    places = list(zip(found.window_end, found.word, strict=True))
    assert dict(zip(places, found.longest, strict=True)) == expected
    point = TextPoint(LONGEST, source="hashtags", most=3)
    counted = texts_with_each_key(point, times, columns)
    assert counted.tolist() == [counts[place] for place in places]


@pytest.mark.parametrize("kind", DISTANCES)
def test_operators_count_the_texts_with_each_word_or_pair(kind):
    texts = english(12, vocabulary=6, most=5)
    operator = counting(kind, most=5, bits=3)
    found = windows_of_texts(operator, np.arange(12) // 4, fields_of(operator, texts))
    expected = {}
    for n, (row, length) in enumerate(zip(texts.words.tolist(), texts.lengths, strict=True)):
        numbered = list(enumerate(row[:length]))
        near = DISTANCES[kind]
        keys = (
            {(word,) for _, word in numbered}
            if near is None
            else {(a, b) for (i, a), (j, b) in combinations(numbered, 2) if j - i <= near}
        )
        for end in (n // 4 + 1, n // 4 + 2):
            for key in keys:
                expected[end, *key] = expected.get((end, *key), 0) + 1
    ends, values = found.window_end.to_numpy(), found.texts.to_numpy()
    keys = [found[name].to_numpy() for name in operator.key_names]
    assert dict(zip(zip(ends, *keys, strict=True), values, strict=True)) == expected
    results = np.arange(len(found))
    number = sum(part << (3 * n) for n, part in enumerate(keys))
    check_values(operator, found, ends, number, values)
    with pytest.raises(AssertionError, match="a window has another value than its texts"):
        check_values(operator, found, ends, number, values + (results == 7))
    with pytest.raises(AssertionError, match="a window has another value"):
        check_values(operator, found, ends[1:], number[1:], values[1:])


def test_every_point_fits_its_accelerator():
    assert len(counting("paircount H", most=16, bits=7).keys) == 120
    for quick in (False, True):
        for point in (point for plot in text_plots(quick=quick).values() for point in plot.points):
            parameters = point.parameters
            assert parameters.keys == 1 << KEY_BITS
            assert parameters.cores == point.cores
            assert point.source in SOURCES
            # More keys in a pane than rows of a core, so that no scan is waited for.
            keys = 2.5 if point.kind == LONGEST else 8
            assert keys * point.pane_texts > parameters.core_keys or quick


def measured(point):
    return {"cycles": 200, "texts": 10, "words": 300, "keys": 100 * point.cores, "results": 7}


def test_a_point_is_measured_once_and_the_files_are_written(tmp_path, monkeypatch):
    calls = []

    def noted(point, manifest):
        calls.append(point)
        return measured(point)

    def prepared(name, parameters, folder, report):
        return SimpleNamespace(hash=f"of {name}")

    monkeypatch.setattr(TextPoint, "measure", noted)
    plot = text_plots()["texts"]
    for _ in range(2):
        found = sweep(plot.points, print, folder=tmp_path, prepared=prepared)
    assert sorted(map(repr, calls)) == sorted(map(repr, plot.points))
    lines = dict(plot.lines(found))
    assert lines["1 core, english"] == [(10.0, 0.5)] * 4
    assert lines["1 core, address"] == [(10.0, 0.5)] * 2
    assert lines["4 cores, english"] == [(40.0, 2.0)] * 2
    write(plot, found, tmp_path, "python -m bench experiments")
    text = (tmp_path / "figure-texts.csv").read_text()
    assert text.startswith("# python -m bench experiments\n# Saturated; texts of 4 to 16 words")
    assert "paircount L,4,english,16,2500,8,200,10,300,400,7,40,2,50\n" in text
    assert (tmp_path / "figure-texts.svg").read_text().startswith("<svg")


@pytest.mark.long
def test_a_small_run_counts_every_word_and_no_core_is_slower_than_a_key_per_cycle(tmp_path):
    point = TextPoint("wordcount", cores=2, most=4, pane_texts=3000, panes=3)
    found = point.measure(prepare(point.accelerator, point.parameters, tmp_path, print))
    assert found["texts"] == 6000
    assert found["keys"] > found["cycles"]
