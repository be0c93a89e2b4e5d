# SPDX-License-Identifier: Apache-2.0
from datetime import datetime
import json
import os

from hypothesis import given, settings
from hypothesis import strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.errors import FailureError, UsageError
from host.files.reading import FORMATS, format_of, read_table
from host.files.writing import write_table

TABLE = pa.table(
    {
        "id": [1, 1 << 62, None],
        "name": ["a", "ü", None],
        "at": pa.array(
            [datetime(2024, 1, 2, 3, 4, 5), None, datetime(2025, 1, 1)], pa.timestamp("s")
        ),
    }
)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.json", "T.PARQUET"])
def test_what_is_written_is_read_back(tmp_path, name):
    path = tmp_path / name
    assert write_table(TABLE.to_batches(max_chunksize=2), TABLE.schema, path) == 3
    back = read_table(path)
    if name.endswith(".csv"):  # CSV cannot tell an empty string from none
        back = back.set_column(1, "name", TABLE["name"])
    assert back.cast(TABLE.schema).to_pydict() == TABLE.to_pydict()
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.json"])
def test_an_empty_result_has_its_columns(tmp_path, name):
    assert write_table([], TABLE.schema, tmp_path / name) == 0
    if not name.endswith(".json"):
        assert read_table(tmp_path / name).column_names == TABLE.column_names


@settings(max_examples=40, deadline=None)
@given(
    before=st.integers(0, 9000),
    behind=st.integers(0, 9000),
    wrong=st.sampled_from(["null", "3", '"k"', "[]"]),
)
def test_a_line_of_json_that_is_no_object_is_an_error_wherever_it_is(
    tmp_path_factory, before, behind, wrong
):
    path = tmp_path_factory.mktemp("json") / "t.json"
    good = '{"k": 1, "text": "null"}\n'
    path.write_text(good * before + f"{wrong}\n" + good * behind)
    with pytest.raises(UsageError, match=r"t\.json' is not valid JSON") as raised:
        read_table(path)
    place = f"in row {before} (the first is 0)."
    assert str(raised.value).endswith("null, which is no object." if wrong == "null" else place)


def test_json_is_read_as_lines_and_as_an_array_alike(tmp_path):
    rows = [{"a": 1, "t": "2024-01-01 00:00:00"}, {"a": 1 << 60, "t": None}]
    lines, array = tmp_path / "lines.json", tmp_path / "array.json"
    lines.write_text("\n" + "\n".join(json.dumps(row) for row in rows))
    array.write_text(json.dumps(rows, indent=2))
    assert read_table(lines) == read_table(array)
    assert read_table(array).schema.field("a").type == pa.int64()
    (tmp_path / "none.json").write_text("[]")
    assert read_table(tmp_path / "none.json").num_rows == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.parquet", b"no parquet"),
        ("t.parquet", b""),
        ("t.csv", b""),
        ("t.csv", b"a,b\n1\n"),
        ("t.json", b"[1, 2]"),
        ("t.json", b'[{"a": 1}'),
        ("t.json", b'{"a": 1}\n{"a": '),
        ("t.json", b"\xff\xfe"),
    ],
)
def test_a_broken_file_is_an_error_of_one_line(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_table(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_missing_file_is_an_error(tmp_path, ending):
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_table(tmp_path / f"missing{ending}")


def test_an_unknown_ending_and_a_name_that_is_no_text_are_errors():
    for path in ("table.xlsx", "table"):
        with pytest.raises(UsageError, match=r"must end in one of \.parquet, \.csv, \.json"):
            format_of(path)
    with pytest.raises(UsageError, match="is no UTF-8"):
        format_of(os.fsdecode(b"\xff.csv"))


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.json"])
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failure_leaves_no_partial_file_and_the_old_one_as_it_was(tmp_path, name, before):
    path = tmp_path / name
    if before is not None:
        path.write_text(before)

    def broken():
        yield from TABLE.to_batches(max_chunksize=1)
        raise FailureError("stop")

    with pytest.raises(FailureError, match="stop"):
        write_table(broken(), TABLE.schema, path)
    assert os.listdir(tmp_path) == ([] if before is None else [name])
    if before is not None:
        assert path.read_text() == before


def test_a_column_that_a_format_cannot_hold_is_an_error(tmp_path):
    nested = pa.table({"a": [[1]]})
    with pytest.raises(UsageError, match="as CSV"):
        write_table(nested.to_batches(), nested.schema, tmp_path / "t.csv")
    binary = pa.table({"a": [b"\xff"]})
    with pytest.raises(UsageError, match="as JSON"):
        write_table(binary.to_batches(), binary.schema, tmp_path / "t.json")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "charset", "words"),
    [
        ("value.csv", "t,k\n1,a\n2,Z\u00fcrich\n", "latin-1", ["line 3", r"b'2,Z\xfcrich'"]),
        ("header.csv", "t,stra\u00dfe\n1,2\n", "latin-1", ["line 1", r"b't,stra\xdfe'"]),
        ("wide.csv", "t,k\n1,a\n", "utf-16", ["line 1", "begins like UTF-16", "iconv -f UTF-16"]),
        ("lines.json", '{"k": "Z\u00fcrich"}\n', "latin-1", ["line 1", "LATIN1"]),
        ("array.json", '[\n{"k": "Z\u00fcrich"}]\n', "latin-1", ["line 2", "LATIN1"]),
    ],
)  # fmt: skip
def test_a_text_file_that_is_not_utf8_is_told_from_other_mistakes(
    tmp_path, name, text, charset, words
):
    folder = tmp_path / "my files"
    folder.mkdir()
    path = folder / name
    path.write_bytes(text.encode(charset))
    with pytest.raises(UsageError, match="is not UTF-8") as caught:
        read_table(path)
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert f"'{path}' > '{path.with_stem(path.stem + '-utf8')}'`" in message


def test_characters_of_several_bytes_are_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,k\n1,Z\u00fcrich\n", encoding="utf-8")
    assert read_table(path).to_pylist() == [{"t": 1, "k": "Z\u00fcrich"}]
    path.write_text("t,k\n1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="Expected 2 columns"):
        read_table(path)


def test_a_parquet_file_has_dictionaries_of_texts_alone(tmp_path):
    """Texts come again and again in a batch, and numbers do not."""
    schema = pa.schema(
        {"n": pa.int64(), "x": pa.float64(), "at": pa.timestamp("us"), "name": pa.string()}
    )
    batch = pa.RecordBatch.from_pylist(
        [{"n": n, "x": n / 2, "at": n, "name": "ab"[n % 2]} for n in range(1_000)], schema
    )
    path = tmp_path / "written.parquet"
    write_table([batch, batch], schema, path)
    assert read_table(path) == pa.Table.from_batches([batch, batch])
    group = pq.ParquetFile(path).metadata.row_group(0)
    with_dictionary = {
        group.column(n).path_in_schema for n in range(4) if group.column(n).has_dictionary_page
    }
    assert with_dictionary == {"name"}
