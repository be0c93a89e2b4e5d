# SPDX-License-Identifier: Apache-2.0
"""All operators of STRETCH's Appendix D and two more, on accelerators generated for them.

What is run is what a user runs: `hdl generate --operator`, and `host operate --device`.
"""

from pathlib import Path
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import count_by_map, longest_tweet_by_map, paircount
from examples.words import MOST, Vocabulary, hashtags_of, words_of
from hdl.__main__ import main as hdl
from host.__main__ import main as host
from host.errors import AcceleratorLimitError
from host.operators.operate import OperatorQuery, load_description, operate_tables, reference_rows

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

#: The operators of Appendix D by their numbers, each with its description, and the two more.
OPERATORS = {
    "8: longest tweet, after a map": "longest_tweet_by_map.py",
    "9: longest tweet": "longest_tweet.py",
    "10: ScaleJoin": "scalejoin.py",
    "12: words, after a map": "count_by_map.py:WORDS",
    "12: pairs, after a map": "count_by_map.py:PAIRS",
    "14: wordcount": "wordcount.py",
    "14: paircount": "paircount.py",
    "15: forward": "forward.py",
    "sessions": "sessions.py",
    "quotes of orders": "quotes_of_orders.py",
}


def texts(count=25):
    """Texts of few words, many of which occur again, a minute or an hour later."""
    generator = random.Random(count)
    words = ["#red", "#pink", "so", "hi", "blue", "#a", "b", "c"]
    time, found = 0, []
    for _ in range(count):
        time += generator.choice([0, 1, 7, 40, 70])
        text = " ".join(generator.choice(words) for _ in range(generator.randrange(MOST + 1)))
        found.append((time, text))
    return found


def arrivals_of(name):
    """Tuples of an operator about texts; None of another operator."""
    names, found = Vocabulary(), texts()
    split = hashtags_of if "tweet" in name else words_of
    return {
        "8: longest tweet, after a map": lambda: longest_tweet_by_map.mapped(
            [(time, "", text) for time, text in found], names
        ),
        "12: words, after a map": lambda: count_by_map.mapped_words(found, names),
        "12: pairs, after a map": lambda: count_by_map.mapped_pairs(
            found, names, paircount.DISTANCE
        ),
        "9: longest tweet": lambda: names.arrivals((t, s, split(s)) for t, s in found),
        "14: wordcount": lambda: names.arrivals((t, s, split(s)) for t, s in found),
        "14: paircount": lambda: names.arrivals((t, s, split(s)) for t, s in found),
    }.get(name, lambda: None)()


def tables_of(name, operator):
    """The rows of each input of an operator."""
    arrivals = arrivals_of(name)
    if arrivals is not None:
        return [pa.Table.from_pylist([{"timestamp": a.timestamp, **a.payload} for a in arrivals])]
    generator = random.Random(7)
    found = []
    for schema in operator.schemas:
        rows = [
            {"timestamp": generator.randrange(400)}
            | {one.name: generator.randrange(min(60, one.range.high + 1)) for one in schema}
            for _ in range(120 if len(operator.schemas) == 1 else 400)
        ]
        found.append(pa.Table.from_pylist(rows))
    return found


#: Operators that are much like another one run with all tests only: to build one takes seconds.
LIKE_OTHERS = {
    "8: longest tweet, after a map",
    "12: words, after a map",
    "12: pairs, after a map",
    "14: paircount",
    "14: wordcount",
}


def test_all_examples_are_among_the_operators():
    # An operator of Python functions runs on no device.
    others = {"__init__.py", "words.py", "medians.py"}
    files = {path.name for path in EXAMPLES.glob("*.py")} - others
    assert {text.partition(":")[0] for text in OPERATORS.values()} == files
    assert {name.partition(":")[0] for name in OPERATORS if name[0].isdigit()} == {
        "8", "9", "10", "12", "14", "15",
    }  # fmt: skip


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.long if name in LIKE_OTHERS else (), id=name)
        for name in OPERATORS
    ],
)
def generated(request, tmp_path_factory):
    """The name of an operator, its description and its accelerator."""
    library = pytest.importorskip("sim.verilated.library")
    name, description = request.param, str(EXAMPLES / OPERATORS[request.param])
    folder = tmp_path_factory.mktemp("operate") / "bundle"
    sizes = ["--sub-window", "128"] if "join" in name.lower() or "quotes" in name else []
    assert hdl(["generate", "--operator", description, "--output", str(folder), *sizes]) == 0
    library.build_library(folder)
    return name, description, f"sim:{folder}"


@pytest.mark.few(1)
def test_operators_of_the_appendix_run_on_a_device(generated, tmp_path, capsys):
    name, description, device = generated
    operator = load_description(description)
    tables = tables_of(name, operator)
    options = ["operate", description, "--device", device, "--verify"]
    for option, table in zip(("--input", "--right"), tables, strict=False):
        file = tmp_path / f"{option.strip('-')}.parquet"
        pq.write_table(table, file)
        options += [option, str(file)]
    assert host([*options, "--output", str(tmp_path / "out.parquet")]) == 0
    expected = reference_rows(tables, OperatorQuery(operator))
    assert pq.read_table(tmp_path / "out.parquet").to_pylist() == expected.to_pylist()
    assert expected.num_rows > 20
    assert "cycles of sim:" in capsys.readouterr().err
    if name == "sessions":  # the accelerator is one of sessions only
        other = load_description(str(EXAMPLES / "wordcount.py"))
        with pytest.raises(
            AcceleratorLimitError, match="differs from 'wordcount' in its fields, k"
        ):
            operate_tables(tables_of("14: wordcount", other), OperatorQuery(other), device)
