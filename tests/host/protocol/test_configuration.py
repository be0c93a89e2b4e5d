# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pyarrow as pa
import pytest

from host import Bounds, CountWindow, Ordering
from host.devices.software import SoftwareDevice
from host.protocol.cells import Cell
from host.protocol.configuration import configuration
from host.query.queries import Query, Term
from host.session.join import join_tables
from sim.model.words import JoinWords
from tests.host.tables import bundle, manifest_of, naive_join


@pytest.mark.parametrize("engine", ["scan", "index"])
def test_an_index_is_told_whether_keys_are_distinct(tmp_path, engine):
    manifest = manifest_of(tmp_path, engine=engine)
    words = configuration(manifest, {}, CountWindow(9), Ordering.outer(), (False, True))
    codec = JoinWords(manifest)
    controls = [codec.unpack_control(word) for word in words]
    told = [control[1:] for control in controls if control[0] == "DISTINCT"]
    assert told == ([(0, 0), (1, 1)] if engine == "index" else [])
    assert [control[0] for control in controls[-4:]] == ["WINDOW", "WINDOW", "PRECISION", "CLEAR"]


@pytest.mark.parametrize("digest_bits", [None, 8])
def test_the_digests_of_a_band_are_told_their_cells(tmp_path, digest_bits):
    manifest = manifest_of(tmp_path, digest_bits=digest_bits)
    name = manifest.keys[0].name
    words = configuration(manifest, {name: Bounds(-3, 4)}, CountWindow(9), Ordering.outer())
    codec = JoinWords(manifest)
    controls = [codec.unpack_control(word) for word in words]
    told = [control[1:] for control in controls if control[0] == "CELL"]
    if digest_bits is None:
        assert told == []
    else:
        assert told[0] == (0, Cell(0, 3).value(manifest))
        assert len(told) == len(manifest.digests.parts)


@pytest.mark.parametrize("beyond", [0, 1, 3, 1 << 40])
@pytest.mark.parametrize("bits", [17, 33])
def test_a_period_beyond_the_words_is_the_longest_one(tmp_path, bits, beyond):
    shape = {"keys": (f"x{bits - 1}",), "sub_window": 8, "probe_bits": 2}
    times, keys = np.arange(40), np.arange(40) % 5
    left, right = (pa.table({"t": times, "k": keys}) for _ in "rs")
    query = Query(
        band=[("k", "k", 0, 0)], time="t", rows=20,
        ordering=Ordering.relaxed((1 << bits) + beyond),
    )  # fmt: skip
    with SoftwareDevice(bundle(tmp_path, **shape)) as device:
        assert device.manifest.input_word["control.value"].bits == bits
        found = join_tables(left, right, query, device).table
    pairs = sorted(zip(found["t"].to_pylist(), found["t_right"].to_pylist(), strict=True))
    assert pairs == sorted(naive_join(left, right, query))


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ["scan", "index"])
@pytest.mark.parametrize("bits", [8, 16])
def test_bounds_beyond_all_differences_are_open_or_empty(tmp_path, engine, bits):
    place = bundle(tmp_path, keys=(f"x{bits}",), sub_window=8, engine=engine)
    ends = [
        -(1 << 70),
        -(1 << 40) - 2,
        -(1 << bits),
        -1,
        1,
        (1 << bits) - 1,
        (1 << 40) + 2,
        1 << 70,
    ]
    keys = np.array([-(1 << bits - 1), -1, 0, 1, (1 << bits - 1) - 1] * 2)
    left, right = (pa.table({"t": np.arange(10), "k": keys}) for _ in "rs")
    with SoftwareDevice(place) as device:
        for low, high in [(low, high) for low in (None, *ends) for high in (None, *ends)]:
            terms = (Term("k", "k", low, high),)
            query = Query(band=terms, time="t", rows=20)
            found = join_tables(left, right, query, device).table
            pairs = list(zip(found["t"].to_pylist(), found["t_right"].to_pylist(), strict=True))
            assert sorted(pairs) == sorted(naive_join(left, right, query)), (low, high)
