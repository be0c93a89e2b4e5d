# SPDX-License-Identifier: Apache-2.0
from contextlib import closing

import pytest

from hdl.parameters import PRESETS
from host.errors import DeviceTimeoutError
from sim.saturated_run import SaturatedRun, tuples


def said(text):
    """Where progress goes."""


def test_windows_are_full_and_counters_tell_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters = PRESETS["tiny"]
    with closing(SaturatedRun(parameters, said, values=100)) as run:
        run.bound(0)
        _, counts = run.measure(100)
        assert tuples(counts) == 100
        held = run.manifest.capacity
        # A tuple of R comes first in each pair, so one of S sees it.
        assert 100 * (held - parameters.probes) <= counts["comparisons"] <= 100 * held


def test_what_never_comes_is_an_error_with_the_counters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(SaturatedRun(PRESETS["tiny"], said, values=100)) as run:
        run.bound(0)
        with pytest.raises(
            DeviceTimeoutError, match=r"within \d+ cycles.*tuples_r 20, tuples_s 20"
        ):
            run.send(run.tuples(8), marks=2)
