# SPDX-License-Identifier: Apache-2.0
"""Real input: every connection among 20,000 flights, against a join written with pandas alone."""

import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from bench.real_inputs import FLIGHTS, JOIN_FLAGS, connections, write_streams

pytestmark = pytest.mark.skipif(not FLIGHTS.exists(), reason="needs `python -m bench.real_inputs`")

COMMANDS = {"host": [], "spark_offload": ["--sort-by-time"]}
"""Each command that joins files, with the flags by which its answer comes in time."""


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    """Arrivals and departures, as files."""
    return write_streams(FLIGHTS, tmp_path_factory.mktemp("flights"))


@pytest.fixture(scope="module")
def expected(streams):
    """The connections, as pandas finds them."""
    found = connections(*streams)
    assert len(found) > 10_000
    return found


def join(command, root, streams, output, *flags):
    return subprocess.run(
        [
            *(sys.executable, "-m", command, "join", *JOIN_FLAGS, *flags),
            *("--left", str(streams[0]), "--right", str(streams[1]), "--output", str(output)),
        ],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "device"),
    [
        pytest.param("host", None, id="host-default"),
        # Others join the same way: tests.spark_offload.test_command in a process of its own.
        *(
            pytest.param(command, device, marks=pytest.mark.long)
            for command, device in [
                ("host", "software:"),
                ("spark_offload", "software:"),
                ("spark_offload", None),
            ]
        ),
    ],
)
def test_connections_agree_with_pandas_row_for_row(
    root, streams, expected, tmp_path, command, device
):
    output = tmp_path / "connections.parquet"
    flags = [*COMMANDS[command], *([] if device is None else ["--device", device])]
    done = join(command, root, streams, output, *flags)
    assert done.returncode == 0, done.stderr
    answer = pq.read_table(output).to_pandas()
    assert list(answer.columns) == list(expected.columns)
    if command == "spark_offload":
        # Spark sorts by the later time of a pair only; which of equal ones comes first is not said.
        later = answer[["time", "time_right"]].max(axis=1)
        assert later.is_monotonic_increasing
        columns = list(expected.columns)
        answer, expected = (rows.sort_values(columns) for rows in (answer, expected))
    assert answer.to_dict("list") == expected.to_dict("list")
