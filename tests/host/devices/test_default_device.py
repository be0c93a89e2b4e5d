# SPDX-License-Identifier: Apache-2.0
"""The device of a query that names none is the smallest that serves it."""

from pathlib import Path

import pytest

from host import CountWindow, TimeWindow
from host.devices import bundles as module
from host.devices.bundles import default_device
from host.devices.simulated import LIBRARY
from host.files.atomic import publish
from host.query.queries import Query, Term
from tests.host.tables import bundle
from tests.windows import over

EQUAL = [Term("a", "a")]
BAND = [Term(name, name, low=-1, high=1) for name in "xyz"]


def query(terms, window):
    return Query(band=terms, time="t", **over(window))


@pytest.fixture
def bundles(tmp_path, monkeypatch):
    """A folder of bundles, one of them the default, and the options of those that were built."""
    built = []

    def make(name, *, library=True, **changes):
        folder = bundle(
            tmp_path / name,
            **{"cores": 1, "engine": "index", "timestamp_bits": 32, "keys": ("x32", "x32")}
            | changes,
        )
        if library:
            publish(Path("/dev/null"), folder / LIBRARY)
        return folder

    def default_bundle(engine, directory, *, options=()):
        assert engine == "index"
        assert directory == tmp_path
        if options:
            built.append(list(options))
            return make("built", sub_window=1 << 20)
        return make("default", sub_window=64)

    monkeypatch.setattr(module, "default_bundle", default_bundle)
    return tmp_path, make, built


@pytest.mark.parametrize("window", [CountWindow(64), TimeWindow(10_000)])
def test_the_default_is_taken_where_it_serves(bundles, window):
    folder, make, built = bundles
    make("larger", sub_window=128)
    chosen = default_device(query(EQUAL, window), directory=folder, build=True)
    assert chosen.bundle == folder / "default"
    assert chosen.uri == f"sim:{folder / 'default'}"
    assert "left.a = right.a" in chosen.reason
    assert not built


def test_the_smallest_that_holds_the_window_is_taken(bundles):
    folder, make, built = bundles
    make("huge", sub_window=1 << 12)
    make("small", sub_window=80)
    make("fitting", sub_window=128)
    make("other-engine", engine="scan", sub_window=100)
    make("narrow", sub_window=100, keys=("x16", "x16"))
    make("timeless", sub_window=100, timestamp_bits=0)
    make("uncompiled", sub_window=100, library=False)
    chosen = default_device(query(EQUAL, CountWindow(90)), directory=folder, build=True)
    assert chosen.bundle == folder / "fitting"
    assert "windows of 90 tuples are more than the default has" in chosen.reason
    assert not built
    # What is known of a time-based window counts in the same way.
    timed = query(EQUAL, TimeWindow(5))
    assert default_device(timed, tuples=129, directory=folder).bundle == folder / "huge"


def test_key_fields_are_counted_like_windows(bundles):
    folder, make, _ = bundles
    make("three", sub_window=64, keys=("x32",) * 3)
    chosen = default_device(query(BAND, CountWindow(9)), directory=folder)
    assert chosen.bundle == folder / "three"
    assert "3 key fields are more than the default has" in chosen.reason


def test_a_larger_one_is_built_only_if_that_is_allowed(bundles):
    folder, _, built = bundles
    wanted = query(BAND, CountWindow(65))
    assert default_device(wanted, directory=folder).bundle == folder / "default"
    assert not built
    chosen = default_device(wanted, directory=folder, build=True)
    assert chosen.bundle == folder / "built"
    assert chosen.reason.endswith("so this was built")
    assert built == [["--sub-window", "128", "--key", "f0:32", "--key", "f1:32", "--key", "f2:32"]]
