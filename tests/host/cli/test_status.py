# SPDX-License-Identifier: Apache-2.0
import io
import time

import pytest

from host.cli import command as status_module
from host.cli.command import Status


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(status_module, "GLANCE", 0.01)
    monkeypatch.setattr(status_module, "PERIOD", 0.01)
    monkeypatch.setenv("TERM", "xterm")


def wait_for(stream, text):
    deadline = time.monotonic() + 20
    while text not in stream.getvalue():
        assert time.monotonic() < deadline, stream.getvalue()
        time.sleep(0.005)


def test_a_terminal_has_one_line_that_is_written_over_and_goes():
    stream, rows = Terminal(), [0]
    with Status("join", stream=stream) as status:
        with status.stage("reading a.csv"):
            wait_for(stream, "join: reading a.csv, 0 s")
        with status.stage("joining", lambda: f"{rows[0]} rows"):
            wait_for(stream, "join: joining, 0 rows")
            rows[0] = 7
            wait_for(stream, "join: joining, 7 rows")
    assert "\n" not in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_log_has_a_line_now_and_then():
    stream = io.StringIO()
    with Status("join", stream=stream) as status, status.stage("planning"):
        wait_for(stream, "s\njoin: planning, ")
    assert "\r" not in stream.getvalue()


def test_a_stage_inside_a_stage_gives_way_to_it_again():
    stream = io.StringIO()
    with Status("join", stream=stream) as status, status.stage("outer"):
        with status.stage("inner"):
            wait_for(stream, "inner")
        stream.truncate(0)
        wait_for(stream, "outer")


def test_nothing_is_written_between_stages_nor_where_it_is_not_wanted():
    stream = io.StringIO()
    with Status("join", stream=stream):
        time.sleep(0.1)
    with Status("join", stream=stream, shown=False) as status, status.stage("hidden"):
        time.sleep(0.1)
    assert stream.getvalue() == ""
