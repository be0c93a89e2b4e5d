# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.fpga.depth import carry_feeds


def carry(cin, cout):
    """Return a carry cell whose pins are the bits given; None leaves a pin out."""
    pins = {"CIN": cin, "COUT": cout}
    return {
        "type": "CCU2C",
        "connections": {port: [bit] for port, bit in pins.items() if bit is not None},
        "port_directions": {"CIN": "input", "COUT": "output"},
    }


def register(di):
    return {
        "type": "TRELLIS_FF",
        "connections": {"DI": [di]},
        "port_directions": {"DI": "input"},
    }


@pytest.mark.parametrize("length", [1, 2, 3, 7])
@pytest.mark.parametrize(("cin", "fed"), [("0", 1), ("1", 1), (99, 1), ("x", 0), (None, 0)])
def test_a_chain_is_fed_once_where_its_first_input_is_connected(length, cin, fed):
    bits = [cin, *range(2, length + 1), None]
    chain = {f"c{n}": carry(bits[n], bits[n + 1]) for n in range(length)}
    assert carry_feeds(chain) == ({"c0": 1} if fed else {})


@pytest.mark.parametrize(("cout", "fed"), [(5, 1), ("x", 0), (None, 0)])
def test_an_output_at_the_end_of_a_chain_is_fed_out_even_without_a_reader(cout, fed):
    assert carry_feeds({"c0": carry("x", cout)})["c0"] == fed


def test_a_carry_that_a_register_reads_as_well_is_fed_out():
    cells = {"c0": carry("x", 2), "c1": carry(2, "x")}
    assert not carry_feeds(cells)
    assert carry_feeds(cells | {"r": register(2)}) == {"c0": 1}


def test_one_cell_can_be_fed_on_both_sides():
    assert carry_feeds({"c0": carry("1", 2), "r": register(2)}) == {"c0": 2}


def test_a_signal_that_is_no_carry_feeds_each_chain_that_begins_with_it():
    assert carry_feeds({"c0": carry(7, "x"), "c1": carry(7, "x"), "r": register(7)}) == {
        "c0": 1,
        "c1": 1,
    }
