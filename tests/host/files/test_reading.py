# SPDX-License-Identifier: Apache-2.0
"""Files as other tools write them, through the commands, against plain loops."""

from datetime import date, datetime, timedelta
import gzip
import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.errors import UsageError
from host.files.reading import files_of, read_table
from host.files.text import CsvOptions, csv_options
from host.files.writing import write_table
from host.pipeline import Pipeline


def run(command, **options):
    """Run a command of ``python -m host``; return its exit code."""
    words = [command]
    for name, values in options.items():
        option = "--" + name.replace("_", "-")
        for value in values if isinstance(values, list) else [values]:
            words += [option] if value is True else [option, str(value)]
    return main(words)


def cells_of(text, delimiter=","):
    """Return the rows of a CSV text; a cell without quotes and characters is None."""
    rows, row, cell, quoted, at = [], [], "", False, 0
    while at < len(text):
        if text[at] == '"':
            quoted, at = True, at + 1
            while text[at : at + 2] == '""' or text[at] != '"':
                cell += text[at]
                at += 2 if text[at] == '"' else 1
        elif text[at] in (delimiter, "\n"):
            row.append(cell if cell or quoted else None)
            if text[at] == "\n":
                rows.append(row)
                row = []
            cell, quoted = "", False
        else:
            cell += text[at]
        at += 1
    assert not row
    assert not cell
    return rows


def csv_text(header, rows, delimiter=",", end="\n", quote_all=False):
    """Return a CSV text in which nulls are empty, and texts are quoted where they must be."""

    def shown(value):
        if value is None:
            return ""
        text = str(value)
        special = text == "" or any(sign in text for sign in (delimiter, '"', "\n", "\r"))
        if special or (quote_all and isinstance(value, str)):
            return '"' + text.replace('"', '""') + '"'
        return text

    lines = [delimiter.join(map(shown, row)) for row in [header, *rows]]
    return end.join(lines) + end


#: Texts that are taken for something else, or cut, by readers that are not careful.
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["", "NA", "null", "nan", "a", "b", " a", 'q"q', '"']),
    st.sampled_from(["a;b", "a,b", "a\tb", "a|b"]),
    st.sampled_from(["1st\n2nd", "\n", "Zürich", "x" * 40, "#", "\\"]),
)  # fmt: skip
TABLES = st.lists(st.tuples(st.integers(0, 40), TEXTS), min_size=1, max_size=12)
DIALECTS = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from([",", ";", "\t", "|"]),
        "end": st.sampled_from(["\n", "\r\n"]),
        "quote_all": st.booleans(),
    }
)


def write_dialect(path, rows, dialect, number, *, bom=False):
    """Write rows of a time and a text, a row that has a text of letters, and the row's number."""
    rows = [(1_000, "text"), *rows]
    numbered = [(time, text, number + at) for at, (time, text) in enumerate(rows)]
    data = csv_text(["time", "key", "n"], numbered, **dialect).encode("utf-8")
    data = b"\xef\xbb\xbf" * bom + data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return numbered


@settings(max_examples=25)
@given(TABLES, TABLES, DIALECTS, DIALECTS, st.booleans(), st.booleans())
def test_csv_of_any_dialect_is_joined_by_what_its_cells_are(
    tmp_path_factory, left, right, one, other, bom, zipped
):
    folder = tmp_path_factory.mktemp("csv")
    paths = [folder / f"l.csv{'.gz' * zipped}", folder / "r.csv"]
    left = write_dialect(paths[0], left, one, 0, bom=bom)
    right = write_dialect(paths[1], right, other, 100)
    join = {"left": paths[0], "right": paths[1], "device": "software:", "output": folder / "o.csv"}
    assert run("join", **join, time="time", on="key", within=10, verify=True) == 0
    header, *rows = cells_of((folder / "o.csv").read_text())
    assert header == ["time", "key", "n", "time_right", "key_right", "n_right"]
    expected = sorted(
        [*mine, *theirs]
        for mine in left
        for theirs in right
        if mine[1] is not None and mine[1] == theirs[1] and abs(mine[0] - theirs[0]) <= 10
    )
    numbers = [[int(r[0]), r[1], int(r[2]), int(r[3]), r[4], int(r[5])] for r in rows]
    assert sorted(numbers) == expected
    # What was written is what is read.
    assert [list(row.values()) for row in read_table(folder / "o.csv").to_pylist()] == numbers
    counted = {"input": paths[0], "time": "time", "window": 10_000, "output": folder / "n.parquet"}
    assert run("aggregate", **counted, aggregate="n=count:key", verify=True) == 0
    count = sum(text is not None for _, text, _ in left)
    assert pq.read_table(folder / "n.parquet")["n"].to_pylist() == [count]


def test_a_missing_key_finds_no_closest_row(tmp_path):
    (tmp_path / "l.csv").write_text('time,key\n1,A\n4,\n5,""\n')
    (tmp_path / "r.csv").write_text('time,key,x\n2,A,1\n3,,2\n3,"",3\n')
    for direction, expected in (("backward", [None, None, 3]), ("nearest", [1, None, 3])):
        files = {"left": tmp_path / "l.csv", "right": tmp_path / "r.csv"}
        code = run(
            "asof", **files, time="time", on="key", direction=direction, verify=True,
            output=tmp_path / "o.parquet",
        )  # fmt: skip
        assert code == 0
        assert pq.read_table(tmp_path / "o.parquet")["x"].to_pylist() == expected


@pytest.mark.parametrize("missing", ["", "NA", "NULL", '""', '"NA"'])
@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-2"], [1, -2]),
        (['"1"', '"2"'], [1, 2]),
        (["0.5", "nan", "1e3"], [0.5, "nan", 1000.0]),
        (["true", "false"], [True, False]),
        (["2024-01-31"], [date(2024, 1, 31)]),
        (["2024-01-31 12:00:00"], [datetime(2024, 1, 31, 12)]),
        (["2024-01-31T12:00:00.25"], [datetime(2024, 1, 31, 12, 0, 0, 250_000)]),
        (["9999-12-31 23:59:59.999999"], [datetime(9999, 12, 31, 23, 59, 59, 999_999)]),
    ],
    ids=str,
)
def test_missing_values_of_columns_that_are_no_text_are_null(tmp_path, cells, values, missing):
    path = tmp_path / "t.csv"
    path.write_text("t,x\n" + "".join(f"1,{cell}\n" for cell in [missing, *cells, missing]))
    found = read_table(path)["x"].to_pylist()
    assert [repr(value) if value != value else value for value in found] == [None, *values, None]


@pytest.mark.parametrize("ending", ["csv", "json"])
@pytest.mark.parametrize(
    "numbers",
    [
        [2**63, 2**63 + 1, 5],
        [12345678901234567890, 12345678901234567891, None],
        [2**64 - 1, 2**64 - 2],
        [2**64, 2**64 + 1],
        [98765432109876543210, 98765432109876543211, 1],
        [-(2**63) - 1, -(2**63) - 2, 2**63],
        [int("123456789" * 9), int("123456789" * 9) + 1],
        [10**400, 10**400 + 1, None],
    ],
    ids=lambda numbers: f"{numbers[0]:.30}" if isinstance(numbers, str) else "",
)
def test_whole_numbers_beyond_64_bits_stay_different(tmp_path, numbers, ending):
    for side in "lr":
        path = tmp_path / f"{side}.{ending}"
        if ending == "csv":
            path.write_text(csv_text(["t", "id"], [(1, number) for number in numbers]))
        else:
            path.write_text("".join(json.dumps({"t": 1, "id": n}) + "\n" for n in numbers))
    files = {"left": tmp_path / f"l.{ending}", "right": tmp_path / f"r.{ending}"}
    join = {**files, "time": "t", "on": "id", "rows": 10, "device": "software:"}
    assert run("join", **join, output=tmp_path / "o.parquet") == 0
    table = pq.read_table(tmp_path / "o.parquet")
    assert not pa.types.is_floating(table.schema.field("id").type)
    pairs = sorted((str(row["id"]), str(row["id_right"])) for row in table.to_pylist())
    assert pairs == sorted((str(n), str(n)) for n in numbers if n is not None)


def test_numbers_of_which_some_have_a_fraction_are_doubles(tmp_path):
    (tmp_path / "t.csv").write_text("x\n12345678901234567890\n0.5\n")
    assert read_table(tmp_path / "t.csv")["x"].to_pylist() == [12345678901234567890.0, 0.5]


@pytest.mark.few(4)
@pytest.mark.parametrize("rows", [1, 3, 60_000])
@pytest.mark.parametrize(
    "cell", ["first\nsecond", "first\r\nsecond", 'one "two"\n,three', "x" * 90]
)
def test_cells_of_several_lines_may_cross_blocks(tmp_path, rows, cell):
    """The file has more than a block of the parser, or a cell as large as several blocks."""
    cell = cell * (1 if rows > 1 else 120_000)
    (tmp_path / "a.csv").write_text(
        csv_text(["time", "note"], [(n, cell) for n in range(rows)]), newline=""
    )
    table = read_table(tmp_path / "a.csv")
    assert table["time"].to_pylist() == list(range(rows))
    assert set(table["note"].to_pylist()) == {cell}


def test_a_quote_without_an_end_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text('time,note\n1,"first\n2,second\n3,third\n')
    with pytest.raises(UsageError, match="the quote before 'first' in the last row has no end"):
        read_table(tmp_path / "a.csv")


@settings(max_examples=40)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "text": st.one_of(st.none(), st.sampled_from(["", "NA", "a\nb", 'x"', "letters"])),
                "whole": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
                "wide": st.one_of(st.none(), st.integers(0, 2**64 - 1)),
                # A column of whole doubles is one of integers, which have no -0.0.
                "real": st.one_of(st.none(), st.floats().map(lambda number: number + 0.0)),
                "flag": st.one_of(st.none(), st.booleans()),
                "day": st.one_of(st.none(), st.dates()),
                "at": st.one_of(st.none(), st.datetimes(min_value=datetime(1000, 1, 1))),
                "clock": st.one_of(st.none(), st.times()),
            }
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_csv_of_the_kit_is_read_back(tmp_path_factory, rows):
    schema = pa.schema(
        {
            "text": pa.string(), "whole": pa.int64(), "wide": pa.uint64(), "real": pa.float64(),
            "flag": pa.bool_(), "day": pa.date32(), "at": pa.timestamp("us"),
            "clock": pa.time64("us"),
        }
    )  # fmt: skip
    table = pa.Table.from_pylist([{**dict.fromkeys(schema.names), "text": "w"}, *rows], schema)
    path = tmp_path_factory.mktemp("back") / "t.csv"
    write_table(table.to_batches(), schema, path)
    back = read_table(path)
    for name in schema.names:
        found = back[name].cast(schema.field(name).type).to_pylist()
        assert list(map(repr, found)) == list(map(repr, table[name].to_pylist())), name


# What is told.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["delimiter=:"], "t:k\n1:a b\n"),
        (["delimiter=tab"], "t\tk\n1\ta b\n"),
        (["quote='"], "t,k\n1,'a b'\n"),
        (["quote=none"], "t,k\n1,a b\n"),
        (["escape=\\"], 't,k\n1,"a b"\n'),
        (["decimal=,"], "t;k;x\n1;a b;0,5\n"),
        (["encoding=latin-1"], "t,k\n1,a b\n"),
        (["encoding=utf-16"], "t,k\n1,a b\n"),
        (["skip=2"], "of a report\n,,,\nt,k\n1,a b\n"),
        (["null=-", "null=?"], "t,k,m\n1,a b,-\n2,?,?\n"),
        (["text=t"], "t,k\n1,a b\n"),
    ],
    ids=str,
)
def test_options_tell_how_a_csv_is_written(tmp_path, options, text):
    found = csv_options(options)
    (tmp_path / "t.csv").write_bytes(text.encode(found.encoding))
    rows = read_table(tmp_path / "t.csv", found).to_pylist()
    assert rows[0]["t"] == ("1" if found.text else 1)
    assert rows[0]["k"] == "a b"
    assert rows[0].get("x", 0.5) == 0.5
    assert rows[1:] in ([], [{"t": 2, "k": None, "m": None}])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (
            "separator=;",
            "one of decimal, delimiter, encoding, escape, null, quote, skip, text, not",
        ),
        ("delimiter", "NAME=VALUE"),
        ("delimiter=::", "one ASCII character"),
        ("skip=few", "a number of lines"),
        ("encoding=klingon", "such as latin-1"),
        ("text=idd", "no column 'idd' in the inputs.*perhaps 'id' is meant"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(tmp_path, capsys, option, words):
    (tmp_path / "l.csv").write_text("t,id\n1,2\n")
    files = {"left": tmp_path / "l.csv", "right": tmp_path / "l.csv", "output": tmp_path / "o.csv"}
    assert run("asof", **files, time="t", csv_option=option) == 2
    assert re.search(words, capsys.readouterr().err)
    assert not (tmp_path / "o.csv").exists()


def test_options_need_a_csv_file_and_do_not_repeat(tmp_path, capsys):
    pq.write_table(pa.table({"t": [1]}), tmp_path / "l.parquet")
    words = {"input": tmp_path / "l.parquet", "output": tmp_path / "o.csv", "time": "t"}
    assert run("aggregate", **words, window=1, aggregate="n=count", csv_option="skip=1") == 2
    assert "no input is one" in capsys.readouterr().err
    with pytest.raises(UsageError, match="'skip' twice"):
        csv_options(["skip=1", "skip=2"])


def test_text_keeps_identifiers_apart(tmp_path):
    (tmp_path / "l.csv").write_text("t,id\n1,007\n2,7\n")
    join = {"left": tmp_path / "l.csv", "right": tmp_path / "l.csv", "device": "software:"}
    join |= {"time": "t", "on": "id", "rows": 5, "output": tmp_path / "o.parquet"}
    for option, pairs in (([], 4), (["text=id"], 2)):
        assert run("join", **join, csv_option=option) == 0
        assert pq.read_table(tmp_path / "o.parquet").num_rows == pairs


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("t,k\n01.02.2024,a\n", "column 't' of '{}' is text because of '01.02.2024' in row 0"),
        ("t,k\n1,a\n2,b\nx,c\n", "because of 'x' in row 2"),
        ("t,k\n1,a\n?,b\n2024-01-01,c\n", "because of '?' in row 1"),
        ("t,k\n1,a\n2024-01-01,b\n", "because its cells have no type in common"),
    ],
)
def test_an_error_about_a_type_names_the_cell_that_made_it_text(tmp_path, capsys, text, cell):
    path = tmp_path / "l.csv"
    path.write_text(text)
    (tmp_path / "r.csv").write_text("t,k\n1,a\n")
    files = {"left": path, "right": tmp_path / "r.csv", "output": tmp_path / "o.parquet"}
    assert run("asof", **files, time="t") == 2
    assert cell.format(path) in capsys.readouterr().err
    assert run("join", **files, time="t", rows=3, device="software:") == 2
    assert cell.format(path) in capsys.readouterr().err
    assert run("join", **files, time="k:t", rows=3, device="software:") == 2
    assert "column 'k' of" in capsys.readouterr().err
    counted = {"input": path, "output": tmp_path / "o.parquet", "time": "t", "window": 3}
    assert run("aggregate", **counted, aggregate="n=count") == 2
    assert cell.format(path) in capsys.readouterr().err
    assert not (tmp_path / "o.parquet").exists()


def test_keys_of_text_and_of_numbers_say_why_they_differ(tmp_path, capsys):
    (tmp_path / "l.csv").write_text("t,k\n1,5\n2,six\n")
    (tmp_path / "r.csv").write_text("t,k\n1,5\n")
    files = {"left": tmp_path / "l.csv", "right": tmp_path / "r.csv"}
    join = {**files, "time": "t", "on": "k", "rows": 3, "device": "software:"}
    assert run("join", **join, output=tmp_path / "o.csv") == 2
    assert "because of 'six' in row 1" in capsys.readouterr().err
    assert run("join", **join, output=tmp_path / "o.csv", csv_option="text=k") == 0


# Inputs of several files.


def parts(folder, texts, ending="csv"):
    folder.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"part-{number}.{ending}").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (["t,k\n1,a\n", "k,t\nb,2\n"], [(1, "a"), (2, "b")]),
        (["t,k\n1,a\n", "t,k\n", "t,k"], [(1, "a")]),
        (["t,k\n", "t,k\n2,b\n"], [(2, "b")]),
        (["t,k\n1,7\n", "t,k\n2,b\n"], [(1, "7"), (2, "b")]),
        (["t,k\n1,007\n", "t,k\n2,b\n"], [(1, "007"), (2, "b")]),
        (["t,k\n1,7\n", "t,k\n2,0.5\n"], [(1, 7.0), (2, 0.5)]),
        (["t,k\n1,true\n", "t,k\n2,5\n"], [(1, "true"), (2, "5")]),
        (["t,k\n1,7\n", f"t,k\n2,{2**63}\n"], [(1, 7), (2, 2**63)]),
        (["t,k\n1,7\n", f"t,k\n2,{10**30}\n"], [(1, "7"), (2, str(10**30))]),
        (["t,k\n1,\n", "t,k\n2,b\n"], [(1, None), (2, "b")]),
        (["t;k\n1;a\n", "t\tk\n2\tb\n"], [(1, "a"), (2, "b")]),
        (
            ["t,k\n1,2024-01-01\n", "t,k\n2,2024-01-01 12:00:00\n"],
            [(1, datetime(2024, 1, 1)), (2, datetime(2024, 1, 1, 12))],
        ),
    ],
    ids=lambda texts: repr(texts) if isinstance(texts[0], str) else "",
)
def test_a_folder_is_read_as_its_files_one_after_another(tmp_path, texts, rows):
    table = read_table(parts(tmp_path / "in", texts))
    assert [(row["t"], row["k"]) for row in table.to_pylist()] == rows


def test_json_files_may_lack_columns(tmp_path):
    texts = ['{"t": 1, "k": "a"}\n', '{"t": 2}\n', '{"t": 3, "x": 5}\n']
    table = read_table(parts(tmp_path / "in", texts, "json"))
    assert table.to_pylist() == [
        {"t": 1, "k": "a", "x": None}, {"t": 2, "k": None, "x": None}, {"t": 3, "k": None, "x": 5},
    ]  # fmt: skip


PARQUET = [
    pa.table({"t": pa.array([1, 4], pa.int32()), "k": pa.array(["a", "b"], pa.string_view())}),
    pa.table({"k": pa.array(["b", None]), "t": pa.array([2, 3], pa.int64())}),
    pa.table({"t": pa.array([], pa.int64()), "k": pa.nulls(0)}),
]


@pytest.mark.parametrize("is_sorted", [True, False])
def test_parquet_files_of_one_input_may_differ_in_types_and_order(tmp_path, is_sorted):
    (tmp_path / "in").mkdir()
    for number, table in enumerate(PARQUET):
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
    pq.write_table(PARQUET[0], tmp_path / "r.parquet")
    join = {"left": tmp_path / "in", "right": tmp_path / "r.parquet", "device": "software:"}
    join |= {"time": "t", "on": "k", "rows": 9, "output": tmp_path / "o.parquet"}
    assert run("join", **join, **({"sorted": True} if is_sorted else {"verify": True})) == 0
    table = pq.read_table(tmp_path / "o.parquet")
    pairs = sorted(zip(table["t"].to_pylist(), table["k"].to_pylist(), strict=True))
    assert pairs == [(1, "a"), (2, "b"), (4, "b")]


@pytest.mark.parametrize("is_sorted", [True, False])
def test_parquet_files_without_a_common_type_are_refused(tmp_path, capsys, is_sorted):
    (tmp_path / "in").mkdir()
    for number, keys in enumerate(([1, 2**62], ["a", "b"], [0.5, 1.5])):
        pq.write_table(pa.table({"t": [1, 2], "k": keys}), tmp_path / "in" / f"{number}.parquet")
    join = {"left": tmp_path / "in", "right": tmp_path / "in", "device": "software:"}
    join |= {"time": "t", "rows": 9, "output": tmp_path / "o.parquet"}
    join |= {"sorted": True} if is_sorted else {}
    assert run("join", **join) == 2
    assert "Column 'k' is string in file" in capsys.readouterr().err
    (tmp_path / "in" / "1.parquet").unlink()
    assert run("join", **join) == 2
    message = capsys.readouterr().err
    assert "Column 'k' of file" in message
    assert "cannot be read as double, its type in other files" in message
    assert not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_folders_of_hive_become_columns(tmp_path, ending):
    days = {"2024-01-01": [1, 2], "2024-01-02": [3], "__HIVE_DEFAULT_PARTITION__": [4]}
    for day, times in days.items():
        place = tmp_path / "in" / f"day={day}" / "city=New%20York"
        place.mkdir(parents=True)
        table = pa.table({"t": times})
        write_table(table.to_batches(), table.schema, place / f"part.{ending}")
        (place / "_SUCCESS").touch()
    expected = [
        {"t": time, "day": None if day[0] == "_" else date.fromisoformat(day), "city": "New York"}
        for day, times in days.items()
        for time in times
    ]
    for path in (tmp_path / "in", tmp_path / "in" / "day=*", tmp_path / "in" / "**" / "*" / "*.*"):
        assert read_table(path).to_pylist() == expected
    one = tmp_path / "in" / "day=2024-01-01" / "city=New%20York" / f"part.{ending}"
    assert read_table(one).column_names == ["t"]
    join = {"left": tmp_path / "in", "right": tmp_path / "in", "device": "software:"}
    join |= {"time": "t", "on": "day", "rows": 9, "sorted": True}
    assert run("join", **join, output=tmp_path / "o.parquet") == 0
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 5


def test_a_pattern_is_the_files_that_it_matches(tmp_path, capsys):
    place = parts(tmp_path / "in", ["t\n1\n", "t\n2\n", "t\n3\n"])
    assert read_table(place / "part-[12].csv")["t"].to_pylist() == [2, 3]
    (place / "part-[12].csv").write_text("t\n9\n")
    assert files_of(place / "part-[12].csv") == [place / "part-[12].csv"]
    with pytest.raises(UsageError, match=r"Pattern '.*' has no files"):
        files_of(place / "no*.csv")
    files = {"left": place / "part-?.csv", "right": place / "part-0.csv"}
    assert run("asof", **files, time="t", output=place / "part-2.csv") == 2
    assert "--output" in capsys.readouterr().err
    assert (place / "part-2.csv").read_text() == "t\n3\n"


@pytest.mark.parametrize("name", ["t.csv.gz", "t.json.gz", "t.csv.zst", "t.jsonl", "t.tsv"])
def test_endings_that_are_read(tmp_path, name):
    text = '{"t": 1, "k": "a"}\n' if "json" in name else "t\tk\n1\ta\n"
    with pa.output_stream(str(tmp_path / name), compression="detect") as stream:
        stream.write(text.encode())
    assert read_table(tmp_path / name).to_pylist() == [{"t": 1, "k": "a"}]


def test_a_file_that_is_not_compressed_as_its_ending_says_is_an_error(tmp_path):
    (tmp_path / "t.csv.gz").write_text("t,k\n1,a\n")
    with pytest.raises(UsageError, match=r"t.csv.gz' cannot be read"):
        read_table(tmp_path / "t.csv.gz")


# Names with a colon.


def test_names_with_a_colon_are_written_with_a_backslash(tmp_path, capsys):
    names = ["at:utc", "k:", "x"]
    for side in "lr":
        rows = [(1, "a", 5), (2, "b", 6)]
        (tmp_path / f"{side}.csv").write_text(csv_text(names, rows))
    files = {"left": tmp_path / "l.csv", "right": tmp_path / "r.csv"}
    out = {"output": tmp_path / "o.parquet"}
    equal = [r"k\::k\:", r"k\:"]
    assert run("join", **files, **out, time=r"at\:utc", on=equal, rows=5, device="software:",
               band=r"at\:utc:at\:utc:-1:1") == 0  # fmt: skip
    assert pq.read_table(tmp_path / "o.parquet").num_rows == 2
    assert run("asof", **files, **out, time=r"at\:utc:at\:utc", on=r"k\:") == 0
    counted = {"time": "at:utc", "on": "k:", "window": 5, "aggregate": "n=count:k:"}
    assert run("aggregate", input=tmp_path / "l.csv", **out, **counted) == 0
    assert run("asof", **files, **out, time="at:utc:at:utc") == 2
    assert r"a colon in a name is written \:" in capsys.readouterr().err


# INT96.


def int96(path, **columns):
    pq.write_table(pa.table(columns), path, use_deprecated_int96_timestamps=True)
    return path


MOMENTS = st.lists(st.one_of(st.none(), st.datetimes()), min_size=1, max_size=6)


@settings(max_examples=40)
@given(MOMENTS)
def test_int96_times_are_read_exactly(tmp_path_factory, moments):
    folder = tmp_path_factory.mktemp("int96")
    times = pa.array(moments, pa.timestamp("us"))
    nested = pa.array([[{"at": moment}] for moment in moments])
    path = int96(folder / "l.parquet", t=list(range(len(moments))), at=times, nested=nested)
    tables = [
        read_table(path),
        Pipeline.of_parquet(path, sorted_by=["t"]).collect(),
        read_table(folder),
    ]
    for table in tables:
        assert table["at"].cast(pa.timestamp("us")).to_pylist() == moments
        found = table["nested"].cast(pa.list_(pa.struct({"at": pa.timestamp("us")}))).to_pylist()
        assert found == [[{"at": moment}] for moment in moments]


def test_int96_keeps_nanoseconds_that_fit(tmp_path):
    ticks = [0, 1, -1, 123_456_789_987_654_321, None, -9_223_372_035_000_000_001]
    path = int96(tmp_path / "l.parquet", at=pa.array(ticks, pa.timestamp("ns")))
    table = read_table(path)
    assert table.schema.field("at").type == pa.timestamp("ns")
    assert table["at"].cast(pa.int64()).to_pylist() == ticks


@pytest.mark.parametrize("is_sorted", [True, False])
def test_int96_of_several_files_have_one_unit_or_are_refused(tmp_path, capsys, is_sorted):
    start, far = datetime(2024, 1, 1), datetime(9999, 12, 31)
    place = tmp_path / "in"
    place.mkdir()
    int96(place / "a.parquet", t=pa.array([start], pa.timestamp("us")))
    int96(place / "b.parquet", t=pa.array([far], pa.timestamp("us")))
    files = {"left": place, "right": place, "output": tmp_path / "o.parquet"}
    more = {"time": "t", "within": "1d", "device": "software:"}
    more |= {"sorted": True} if is_sorted else {}
    assert run("join", **files, **more) == 0
    times = pq.read_table(tmp_path / "o.parquet")["t"].to_pylist()
    assert sorted(times) == [start, far]
    (tmp_path / "o.parquet").unlink()
    int96(place / "c.parquet", t=pa.array([1], pa.timestamp("ns")))
    assert run("join", **files, **more) == 2
    message = capsys.readouterr().err
    assert "column 't' of file" in message
    assert "TIMESTAMP_MICROS" in message
    assert not (tmp_path / "o.parquet").exists()


def test_only_times_beyond_every_timestamp_are_refused_of_int96(tmp_path):
    """The last Julian day that INT96 can hold lies 11 million years ahead."""
    path = int96(tmp_path / "l.parquet", t=pa.array([datetime(2024, 1, 1)], pa.timestamp("us")))
    day = int((date(2024, 1, 1) - date(1970, 1, 1)) / timedelta(days=1)) + 2_440_588
    data = path.read_bytes()
    old, new = (np.uint32(number).tobytes() for number in (day, 2**32 - 1))
    assert data.count(bytes(8) + old) >= 1
    path.write_bytes(data.replace(bytes(8) + old, bytes(8) + new))
    with pytest.raises(UsageError, match="beyond the year 290,000"):
        read_table(path)


def test_options_have_defaults():
    assert csv_options([]) == CsvOptions()
