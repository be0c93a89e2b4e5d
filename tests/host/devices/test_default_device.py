# SPDX-License-Identifier: Apache-2.0
"""The device of a query: the one that is named, the software engine, or the simulated one."""

from dataclasses import replace
from pathlib import Path

import pytest

from host import CountWindow, Ordering, ThresholdController, TimeWindow, open_device
from host.devices import bundles as module
from host.devices import simulated
from host.devices.bundles import choose_device
from host.devices.simulated import LIBRARY
from host.files.atomic import publish
from host.query.ordering import InputRate
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

    def default_bundle(engine, directory, *, options=(), what=""):
        if engine != "index":
            if options:
                built.append((list(options), what))
                own = {"comparator": "custom", "where": options[1], "keys": ("x32", "x32")}
                size = int(options[-1]) if options[-2] == "--sub-window" else 64
                return make(f"own{len(built)}", engine="scan", cores=4, sub_window=size, **own)
            return make(engine, sub_window=64, engine="scan", cores=4)
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
    chosen = choose_device("sim:", query(EQUAL, window), directory=folder, build=True)
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
    chosen = choose_device("sim:", query(EQUAL, CountWindow(90)), directory=folder, build=True)
    assert chosen.uri == f"sim:{folder / 'fitting'}"
    assert "windows of 90 tuples are more than the default has" in chosen.reason
    assert not built
    # What is known of a time-based window counts in the same way.
    timed = query(EQUAL, TimeWindow(5))
    assert (
        choose_device("sim:", timed, tuples=129, directory=folder).uri == f"sim:{folder / 'huge'}"
    )


def test_key_fields_are_counted_like_windows(bundles):
    folder, make, _ = bundles
    make("three", sub_window=64, keys=("x32",) * 3)
    chosen = choose_device("sim:", query(BAND, CountWindow(9)), directory=folder)
    assert chosen.uri == f"sim:{folder / 'three'}"
    assert "3 key fields are more than the default has" in chosen.reason


def test_a_larger_one_is_built_only_if_that_is_allowed(bundles):
    folder, _, built = bundles
    wanted = query(BAND, CountWindow(65))
    assert choose_device("sim:", wanted, directory=folder).uri == f"sim:{folder / 'default'}"
    assert not built
    chosen = choose_device("sim:", wanted, directory=folder, build=True)
    assert chosen.uri == f"sim:{folder / 'built'}"
    assert chosen.reason.endswith("so this was built")
    assert built == [["--sub-window", "128", "--key", "f0:32", "--key", "f1:32", "--key", "f2:32"]]


def test_a_condition_that_nothing_bounds_gets_an_accelerator_if_that_is_asked_for(bundles):
    folder, _, built = bundles
    asked = Query(time="t", rows=9, where="l.x < r.x and l.city != r.city and l.name != 'a'")
    chosen = choose_device("sim:", asked, directory=folder)
    assert chosen.uri == f"sim:{folder / 'scan'}"
    assert "build=True (--build) builds one that decides the condition itself" in chosen.reason
    assert not built
    chosen = choose_device("sim:", asked, directory=folder, build=True)
    assert chosen.uri == f"sim:{folder / 'own1'}"
    own = "(l.f1 < r.f1) & (l.f0 != r.f0)"
    assert chosen.reason.endswith(f"it finds {own}")
    options = ["--where", own, "--key", "f0:32", "--key", "f1:32"]
    assert built == [(options, f"an accelerator that finds pairs with {own}")]
    larger = Query(time="t", rows=300, where=asked.where)
    chosen = choose_device("sim:", larger, directory=folder, build=True)
    assert chosen.uri == f"sim:{folder / 'own3'}"
    assert built[-1][0] == [*options, "--sub-window", "128"]


@pytest.mark.parametrize(
    "words",
    [
        {"where": "l.x < r.x and l.city != r.city", "on": "k"},
        {"where": "abs(l.x - r.x) <= 3 and l.city != r.city"},
        {"where": "l.x - r.x <= 3"},
        {"where": "l.name != 'a' or l.x * 0.5 < r.x"},
    ],
)
def test_what_terms_bound_or_no_circuit_decides_is_left_to_the_host(bundles, words):
    folder, _, built = bundles
    asked = Query(time="t", rows=9, **words)
    chosen = choose_device("sim:", asked, directory=folder, build=True)
    assert Path(chosen.uri[4:]).name in ("default", "scan")
    assert "--build" not in chosen.reason
    assert not built


@pytest.fixture
def nothing_built(monkeypatch):
    """No bundle may be looked for, as on a machine without a compiler and without the builder."""

    def refuse(*arguments, **options):
        raise AssertionError("a bundle was looked for")

    monkeypatch.setattr(module, "default_bundle", refuse)
    monkeypatch.delenv("SPLITJOIN_DEVICE", raising=False)


@pytest.mark.parametrize("window", [CountWindow(1 << 20), TimeWindow(10**15)])
def test_the_software_engine_serves_where_no_accelerator_is_named(nothing_built, window):
    chosen = choose_device(None, query(BAND, window))
    assert chosen.uri == "software:"
    assert "no accelerator is named" in chosen.reason


def test_a_variable_names_the_device_where_the_user_does_not(nothing_built, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_DEVICE", " sim:some/bundle ")
    asked = query(EQUAL, CountWindow(5))
    chosen = choose_device(None, asked)
    assert (chosen.uri, chosen.reason) == ("sim:some/bundle", "named by SPLITJOIN_DEVICE")
    assert choose_device("software:", asked).uri == "software:"
    monkeypatch.setenv("SPLITJOIN_DEVICE", "")
    assert choose_device(None, asked).uri == "software:"


def test_the_variable_can_ask_for_the_simulated_accelerator(bundles, monkeypatch):
    folder, _, _ = bundles
    monkeypatch.setenv("SPLITJOIN_DEVICE", "sim:")
    chosen = choose_device(None, query(EQUAL, CountWindow(5)), directory=folder)
    assert chosen.uri == f"sim:{folder / 'default'}"
    assert chosen.reason.startswith("named by SPLITJOIN_DEVICE: the default for")


def test_what_only_an_accelerator_has_is_simulated_where_none_is_named(bundles, monkeypatch):
    folder, _, _ = bundles
    monkeypatch.delenv("SPLITJOIN_DEVICE", raising=False)
    plain = query(EQUAL, CountWindow(5))
    elastic = replace(plain, elastic=ThresholdController())
    adaptive = replace(plain, ordering=Ordering.adaptive(8, InputRate(1)))
    needs = [(elastic, {}), (adaptive, {}), (plain, {"needs": "--pace"}), (plain, {"build": True})]
    for asked, given in needs:
        chosen = choose_device(None, asked, directory=folder, **given)
        # Of one core, none could be left out.
        name = "scan" if asked is elastic else "default"
        assert chosen.uri == f"sim:{folder / name}"
        assert "needs an accelerator, and none is named" in chosen.reason


def test_the_address_of_the_simulated_accelerator_can_be_opened_by_itself(bundles, monkeypatch):
    _, make, _ = bundles
    opened = []
    monkeypatch.setattr(module, "default_bundle", lambda engine: make(engine))
    monkeypatch.setattr(
        simulated, "SimulatedDevice", lambda place, *, uri: opened.append((place.name, uri))
    )
    open_device("sim:")
    assert [name for name, _ in opened] == ["index"]
    assert opened[0][1].endswith("/index")
