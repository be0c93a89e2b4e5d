# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.parameters import JoinParameters
from hdl.presets import PRESETS
from hdl.registers.table import MAGIC, Field, Register, RegisterTable, shell_table

BIT = Field(name="BIT", offset=0, description="A bit.")


def register(*fields, **changes):
    values = {"name": "R", "address": 0, "description": "A register.", "fields": fields}
    return Register(**values | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "bit"}, "Name of a field must be in capitals, such as 'RESET', not 'bit'"),
        ({"access": "x"}, "Access of field BIT must be one of ro, rw, w1c, wo, not 'x'"),
        ({"offset": 31, "bits": 2}, "must lie within bits 0 to 31 of its register, not at bit 31"),
        ({"access": "wo", "reset": 1}, "Field BIT of access 'wo' must be zero on reset"),
        ({"access": "rw", "reset": 2}, "Reset value of field BIT must fit 1 bits, not 2"),
    ],
)
def test_a_wrong_field_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Field(**{"name": "BIT", "offset": 0, "description": "A bit."} | changes)


@pytest.mark.parametrize(
    ("fields", "changes", "message"),
    [
        ((BIT,), {"name": "a"}, "Name of a register must be in capitals, such as 'RESET'"),
        ((BIT,), {"address": 2}, "Address of register R must be a multiple of 4 below 0x1000"),
        ((BIT,), {"address": 4096}, "must be a multiple of 4 below 0x1000, not 0x1000"),
        ((), {}, "Register R must have at least one field"),
        ((BIT, BIT), {}, "Field BIT of register R must begin at bit 1 or above, not at bit 0"),
        (
            (BIT, Field(name="BIT", offset=1, description="Again.")), {},
            "Register R must have one field BIT, not two",
        ),
        (
            (Field(name="BIT", offset=0, access="rw", description="."),), {"stored": True},
            "Field BIT of the stored register R must be 'ro' and no constant",
        ),
    ],
)  # fmt: skip
def test_a_wrong_register_is_refused(fields, changes, message):
    with pytest.raises(ValueError, match=message):
        register(*fields, **changes)


def test_a_wrong_table_is_refused():
    one, other = register(BIT, address=4), register(BIT, name="S")
    with pytest.raises(ValueError, match="Register S at 0x0 must come behind R at 0x4"):
        RegisterTable("t", (one, other))
    with pytest.raises(ValueError, match="Table t must have one R, not two"):
        RegisterTable("t", (one, register(BIT, address=8)))
    with pytest.raises(ValueError, match="Name of a table must be in lower case, not 'T'"):
        RegisterTable("T", (one,))


def test_registers_know_what_they_are():
    status = register(BIT)
    assert (status.access, status.is_writable, status.reset) == (("ro",), False, None)
    mixed = register(
        Field(name="A", offset=0, bits=4, reset=5, description="."),
        Field(name="B", offset=8, bits=2, access="rw", reset=2, description="."),
        Field(name="C", offset=31, access="wo", description="."),
    )
    assert (mixed.access, mixed.is_writable, mixed.reset) == (("ro", "rw", "wo"), True, 0x205)
    assert mixed.fields[1].mask == 0x300
    assert RegisterTable("t", (mixed,))["R"] is mixed
    with pytest.raises(KeyError):
        RegisterTable("t", (mixed,))["S"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_registers(name):
    table = shell_table(PRESETS[name])
    assert table["ID"].reset == MAGIC
    assert table["ENGINE"].fields[0].reset == PRESETS[name].cores
    assert table["CYCLES_HI"].address == table["CYCLES_LO"].address + 4 == 0x104


def test_the_map_says_what_was_generated():
    parameters = JoinParameters.of(
        cores=3, sub_window=8, timestamp_bits=16, failure_cycles=10_000, parity=True,
        engine="index", tuples_per_word=2, result_streams=2,
    )  # fmt: skip
    table = shell_table(parameters)
    engine = {field.name: field.reset for field in table["ENGINE"].fields}
    assert engine == {
        "CORES": 3, "INDEX": 1, "TIMESTAMPS": 1, "GATES": 1, "PARITY": 1, "OWN": 0,
        "CLOCK_REQUESTS": 0,
    }  # fmt: skip
    words = {field.name: field.reset for field in table["WORDS"].fields}
    assert (words["TUPLES"], words["RESULT_PORTS"]) == (2, 2)
    assert table["PARITY_ERRORS_LO"].address == 0x100 + 8 * 17
    described = table.describe()
    assert [entry["name"] for entry in described] == [one.name for one in table.registers]
    assert described[0]["fields"][0]["reset"] == MAGIC


def test_every_core_has_a_bit_in_the_registers_about_clocks():
    table = shell_table(JoinParameters.of(cores=70, sub_window=8, clock_requests=True))
    found = {one.name: (one.address, one.fields[0].bits) for one in table.registers}
    for name, address in (("CLOCK_REQUEST", 0x80), ("VACANT", 0xC0)):
        words = [found[f"{name}_{n}"] for n in range(3)]
        assert words == [(address, 32), (address + 4, 32), (address + 8, 6)]
    assert "VACANT_3" not in found
    engine = {field.name: field.reset for field in table["ENGINE"].fields}
    assert engine["CLOCK_REQUESTS"] == 1
    most = JoinParameters.of(cores=512, sub_window=8, clock_requests=True)
    assert shell_table(most)["VACANT_15"].address == 0xFC
    with pytest.raises(ValueError, match="clock requests of at most 512 cores, not 513; generate"):
        shell_table(most.with_(cores=513))
