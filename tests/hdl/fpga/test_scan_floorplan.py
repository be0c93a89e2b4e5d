# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY, Handshake
from hdl.fpga.critical_path import Hierarchy, class_of
from hdl.fpga.devices import DEVICES
from hdl.fpga.floorplan import scan_floorplan
from hdl.fpga.provenance import routed_verilog
from hdl.fpga.shell import SHELL
from hdl.parameters import JoinParameters, KeyField
from tests.halves import half
from tests.hdl.fpga.ram_places import places

DEVICE = DEVICES["lfe5u-85f"]


def names(*, cores, columns):
    """Block RAMs of an accelerator, in no order."""
    return [
        f"accelerator.core_{core}.{side}.engine.ring.column_{column}.block_0.ram"
        for column in reversed(range(columns))
        for core in range(cores)
        for side in ("left", "right")
    ]


def chain_names(*, cores, blocks):
    """Block RAMs of a chain of cores, in no order."""
    return [
        f"accelerator.chain.core_{core}.segment_{side}.ring.block_{block}.ram"
        for block in reversed(range(blocks))
        for core in range(cores)
        for side in "sr"
    ]


def test_the_device_has_as_many_sites_as_block_rams():
    assert len(set(DEVICE.ram_columns)) * len(set(DEVICE.ram_rows)) == DEVICE.block_rams


@pytest.mark.parametrize(("cores", "columns"), [(1, 1), (3, 4), (4, 26), (8, 13), (9, 8), (16, 6)])
def test_every_block_ram_has_a_site_of_its_own(cores, columns):
    rams = names(cores=cores, columns=columns)
    sites = scan_floorplan(rams, DEVICE, cores=cores)
    assert set(sites) == set(rams)
    assert len(set(sites.values())) == len(rams)
    assert {row for _, row in places(sites).values()} <= set(DEVICE.ram_rows)


def test_the_lanes_of_a_region_stand_side_by_side_below_those_of_the_other():
    sites = places(scan_floorplan(names(cores=8, columns=13), DEVICE, cores=8))
    ring = "accelerator.core_5.{}.engine.ring.column_{}.block_0.ram"
    left = [sites[ring.format("left", n)] for n in range(13)]
    right = [sites[ring.format("right", n)] for n in range(13)]
    everywhere = [column for column, _ in DEVICE.ram_columns]
    first = everywhere.index(left[0][0])
    assert [column for column, _ in left] == everywhere[first : first + 13]
    assert [column for column, _ in left] == [column for column, _ in right]
    assert {row for _, row in left} == {70}
    assert {row for _, row in right} == {82}


def test_the_regions_of_many_cores_stand_side_by_side_and_neighbours_below_each_other():
    sites = places(scan_floorplan(names(cores=16, columns=2), DEVICE, cores=16))
    ring = "accelerator.core_{}.{}.engine.ring.column_0.block_0.ram"
    left = [sites[ring.format(core, "left")] for core in range(16)]
    right = [sites[ring.format(core, "right")] for core in range(16)]
    assert [row for _, row in left] == [row for _, row in right] == 4 * list(DEVICE.ram_rows)
    columns = [column for pair in zip(left[::4], right[::4], strict=True) for column, _ in pair]
    assert columns == sorted(set(columns))
    assert {column for column, _ in left} == {column for column, _ in left[::4]}


def test_digests_stand_among_the_keys_of_their_lanes():
    digests = names(cores=4, columns=8)
    keys = [name.replace(".ring.", ".verifier.ring.") for name in names(cores=4, columns=16)]
    tables = [
        f"accelerator.core_{core}.{side}.engine.passes.probes.block_{block}.ram"
        for core in range(4) for side in ("left", "right") for block in range(2)
    ]  # fmt: skip
    sites = places(scan_floorplan([*tables, *keys, *digests], DEVICE, cores=4))
    assert len(set(sites.values())) == 208
    of_region = sorted((name for name in sites if ".core_2.left." in name), key=sites.get)
    kinds = "".join("kdt"[("verifier" not in n) + ("passes" in n)] for n in of_region)
    assert kinds == "kdkkdktkdkkdkkdkkdktkdkkdk"


@pytest.mark.parametrize(("cores", "strips"), [(1, 1), (2, 1), (4, 2), (5, 3), (16, 8)], ids=str)
def test_deadlines_stand_beside_the_keys_on_the_side_of_the_middle(cores, strips):
    deadlines = [
        f"accelerator.core_{core}.{side}.tracker.by_time.deadlines_2.numbers.block_{block}.block.ram"
        for core in range(cores) for side in ("left", "right") for block in range(2)
    ]  # fmt: skip
    keys = names(cores=cores, columns=4)
    sites = places(scan_floorplan([*deadlines, *keys], DEVICE, cores=cores))
    assert set(sites) == {*deadlines, *keys}
    columns = [column for column, _ in DEVICE.ram_columns]
    for core in range(cores):
        for side in ("left", "right"):
            region = f".core_{core}.{side}."
            own = sorted((name for name in sites if region in name), key=sites.get)
            assert len({sites[name][1] for name in own}) == 1
            at = [columns.index(sites[name][0]) for name in own]
            assert at == list(range(at[0], at[0] + 6))
            kinds = "".join("d" if "deadlines" in name else "k" for name in own)
            assert kinds == (
                "kkkkdd" if 2 * (at[0] // (len(columns) // strips)) < strips else "ddkkkk"
            )


def block_rams(parameters):
    """Names of the block RAMs of an accelerator as it is routed, from the Verilog."""
    verilog = routed_verilog(parameters, DEVICE)
    hierarchy, rams = Hierarchy(verilog, top=SHELL), []

    def visit(module, path):
        if class_of(module) == "block_ram":
            rams.append(".".join([*path, "ram"]))
        for name, child in hierarchy.instances[module].items():
            visit(child, [*path, name])

    visit(SHELL, [])
    return rams


@pytest.mark.long
@pytest.mark.parametrize(
    ("digest_bits", "timestamp_bits", "parity"),
    [(12, 24, False), pytest.param(None, 24, True, marks=pytest.mark.long)],
)
def test_every_block_ram_of_a_scan_as_it_is_routed_has_a_site(digest_bits, timestamp_bits, parity):
    """A memory whose name the floorplan does not know would leave all of them to the placer."""
    parameters = JoinParameters.of(
        cores=2, sub_window=1_016, keys=(KeyField(name="x", bits=32),), comparator="equality",
        lanes=2, probes=4, fan_in=2, digest_bits=digest_bits, timestamp_bits=timestamp_bits,
        parity=parity, failure_cycles=8_192 if parity else 0,
    )  # fmt: skip
    rams = block_rams(parameters)
    assert any("deadlines" in name for name in rams)
    assert set(scan_floorplan(rams, DEVICE, cores=2)) == set(rams)


@pytest.mark.parametrize(
    ("cores", "blocks"),
    [(1, 3), (2, 1), (3, 2), (5, 2), (8, 13), (9, 2), (16, 2), (32, 1), (32, 3)],
)
def test_each_core_of_a_chain_stands_beside_its_neighbours(cores, blocks):
    rams = chain_names(cores=cores, blocks=blocks)
    sites = places(scan_floorplan(rams, DEVICE, cores=cores, rings=Handshake.rings))
    assert set(sites) == set(rams)
    assert len(set(sites.values())) == len(rams)
    columns, rows = [column for column, _ in DEVICE.ram_columns], list(DEVICE.ram_rows)

    def strip_and_row(core):
        """Where a core is, in strips of both of its segments and in rows of them."""
        both = [
            [sites[name] for name in rams if f".core_{core}.segment_{side}." in name]
            for side in "sr"
        ]
        down = {tuple({rows.index(row) for _, row in ring}) for ring in both}
        across = min(columns.index(column) for ring in both for column, _ in ring)
        assert all(len(own) == 1 for own in down)  # a segment stands in one row
        return across, min(down)[0] // (1 if cores > 8 else 2)

    found = [strip_and_row(core) for core in range(cores)]
    width = min((b - a for a in {x for x, _ in found} for b in {x for x, _ in found} if b > a),
                default=0)  # fmt: skip
    for (x, y), (next_x, next_y) in pairwise(found):
        assert (abs(next_x - x), abs(next_y - y)) in {(width, 0), (0, 1)}


@pytest.mark.long
@pytest.mark.parametrize(
    ("architecture", "cores", "sub_window"),
    half([HANDSHAKE, LOW_LATENCY], [(2, 504), (3, 252)], of=3),
)
def test_every_block_ram_of_a_chain_as_it_is_routed_has_a_site(architecture, cores, sub_window):
    """The names are those of the Verilog, whose hierarchy synthesis flattens."""
    fields = tuple(KeyField(name=name, bits=16) for name in "xy")
    parameters = JoinParameters.of(
        cores=cores, sub_window=sub_window, keys=fields, fan_in=2, architecture=architecture
    )
    rams = block_rams(parameters)
    assert len(rams) == 2 * cores * (parameters.ring_rows // 512)
    assert set(scan_floorplan(rams, DEVICE, cores=cores, rings=parameters.rings)) == set(rams)


@pytest.mark.parametrize(
    "rams",
    [
        names(cores=8, columns=14),  # too many for a strip
        ["accelerator.core_0.left.engine.heads.block_0.ram"],  # of an index
        chain_names(cores=8, blocks=14),
        [*chain_names(cores=1, blocks=1), "accelerator.coordinator.window_r.block_0.ram"],
        [],
    ],
)
def test_what_does_not_fit_is_left_to_the_placer(rams):
    assert scan_floorplan(rams, DEVICE, cores=8, rings=Handshake.rings) == {}


def test_a_device_without_known_sites_is_left_to_the_placer():
    assert scan_floorplan(names(cores=1, columns=1), DEVICES["lfe5u-25f"], cores=1) == {}
