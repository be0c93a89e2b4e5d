# SPDX-License-Identifier: Apache-2.0
"""What a query asks of cores is there, or is an error that says what would give it."""

import pyarrow as pa
import pytest

from hdl.presets import PRESETS as ACCELERATORS
from host import Ordering, Query, open_device
from host.cli.explanation import explain, size_of_join
from host.devices import bundles
from host.devices.bundles import choose_device
from host.errors import AcceleratorLimitError
from host.installation import PRESETS
from host.protocol.configuration import lacking
from host.session.join import Join
from tests.host.small_bundles import write_manifest
from tests.host.test_every_path import INDEX, PARAMETERS

ROWS = pa.table({"t": list(range(12)), "k": [0, 1, 2] * 4})
WORDS = {"time": "t", "on": "k", "within": 5}
ONE_CORE = INDEX.with_(cores=1)
GATED = PARAMETERS.with_(failure_cycles=1 << 16, rounds=True)
ASKED = {
    "on_failure": {"on_failure": "replay"},
    "an inner order in hardware": {"ordering": Ordering.inner(in_hardware=True)},
    "elastic": {"elastic": True},
}


def opened(folder, parameters):
    return open_device(f"software:{write_manifest(parameters, folder / 'bundle')}")


@pytest.mark.parametrize("word", ["on_failure", "elastic"])
def test_what_a_device_cannot_do_is_refused_with_the_remedy(tmp_path, word):
    query = Query(**WORDS, **ASKED[word])
    with opened(tmp_path, ONE_CORE) as device, pytest.raises(AcceleratorLimitError) as caught:
        Join(ROWS, ROWS, query, device)
    assert word in str(caught.value)
    assert "device 'sim:'" in str(caught.value)
    (said,) = (text for text in lacking(device.manifest) if text.startswith(word))
    option = said.partition("(")[2].rstrip(")")
    assert option in str(caught.value)


@pytest.mark.parametrize("word", ["on_failure", "elastic"])
def test_the_software_engine_has_no_cores(word):
    query = Query(**WORDS, **ASKED[word])
    with open_device("software:") as device, pytest.raises(AcceleratorLimitError, match=word):
        Join(ROWS, ROWS, query, device)
    with open_device("software:") as device:
        assert Join(ROWS, ROWS, query.in_software, device).run().table.num_rows


def test_without_rounds_the_host_gives_the_inner_order(tmp_path):
    query = Query(**WORDS, **ASKED["an inner order in hardware"])
    with opened(tmp_path, ONE_CORE) as device:
        found = Join(ROWS, ROWS, query, device).run().table
    with open_device("software:") as device:
        assert found.equals(Join(ROWS, ROWS, Query(**WORDS), device).run().table)


def test_a_device_with_all_of_them_lacks_nothing(tmp_path):
    with opened(tmp_path, GATED) as device:
        assert lacking(device.manifest) == []
        for words in ASKED.values():
            Join(ROWS, ROWS, Query(**WORDS, **words), device)


def test_explain_says_what_the_words_would_need(tmp_path):
    for parameters in (ONE_CORE, GATED):
        folder = tmp_path / str(parameters.cores)
        folder.mkdir()
        with opened(folder, parameters) as device:
            join = Join(ROWS, ROWS, Query(**WORDS), device)
            told = explain(join, size_of_join(ROWS, ROWS, join.query))
        assert [word for word in ASKED if word in told] == (
            list(ASKED) if parameters is ONE_CORE else []
        )


@pytest.mark.parametrize(("word", "preset"), [*zip(ASKED, ("gated", "gated", "scan"), strict=True)])
def test_the_simulated_device_is_one_that_can(monkeypatch, tmp_path, word, preset):
    made = []

    def default(engine, directory=None, **_):
        made.append(engine)
        return write_manifest(ACCELERATORS[PRESETS[engine]], tmp_path / engine)

    monkeypatch.setattr(bundles, "default_bundle", default)
    query = Query(**WORDS, **ASKED[word])
    device = "sim:" if word == "an inner order in hardware" else None
    chosen = choose_device(device, query, directory=tmp_path)
    assert made == [preset]
    with open_device(f"software:{chosen.uri.removeprefix('sim:')}") as device:
        Join(ROWS, ROWS, query, device)


def test_the_preset_with_gates_is_the_default_scan_otherwise():
    parameters = ACCELERATORS["demo-gated"]
    assert parameters.with_(failure_cycles=0, rounds=False) == ACCELERATORS["demo"]
    assert parameters.engine.gates.failure_cycles >= parameters.longest_silence
