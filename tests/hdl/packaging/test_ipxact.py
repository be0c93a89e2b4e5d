# SPDX-License-Identifier: Apache-2.0
"""The description in IP-XACT: what its schema asks for, and what the circuit and its registers are.

Accellera's schema of IEEE 1685-2014 may not be modified, and is not stored here. The descriptions
below were valid under it; here they are held to the parts of the standard that they use.
"""

from dataclasses import replace
import re
from xml.etree import ElementTree

import pytest

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.installation import kit_version
from hdl.packaging.headers import PackageNames
from hdl.packaging.ipxact import NAMESPACE, component_xml
from hdl.packaging.one_file import packaged_component, packaged_ports
from hdl.shells.axi import AxiOptions
from tests.hdl.packaging.packaged import TINY

NAMES = PackageNames("trades_")
MANIFEST = {"kit": kit_version(), "hash": "ab" * 32}
EXTERNAL = TINY.with_(store="external", memory_width=64, memory_burst=4)
SHELLS = {
    "plain": (TINY, AxiOptions()),
    "two clocks": (TINY, AxiOptions(inputs=2, bus_clock="separate", names="vitis")),
    "memories": (EXTERNAL, AxiOptions(packet=16)),
    "aggregate": (AGGREGATE_PRESETS["tiny-aggregate"], AxiOptions(inputs=40)),
    "ports": (TINY.with_(result_streams=2), AxiOptions(bus_clock="separate")),
}

#: Elements and what stands in them, in this order.
CHILDREN = {
    "component": "vendor library name version busInterfaces addressSpaces? memoryMaps model "
    "fileSets description",
    "busInterfaces": "busInterface+",
    "busInterface": "name busType abstractionTypes master|slave parameters?",
    "busType": "",
    "abstractionTypes": "abstractionType+",
    "abstractionType": "abstractionRef portMaps",
    "abstractionRef": "",
    "portMaps": "portMap+",
    "portMap": "logicalPort physicalPort",
    "logicalPort": "name",
    "physicalPort": "name",
    "master": "addressSpaceRef?",
    "addressSpaceRef": "",
    "slave": "memoryMapRef?",
    "memoryMapRef": "",
    "parameters": "parameter+",
    "parameter": "name value",
    "addressSpaces": "addressSpace+",
    "addressSpace": "name range width",
    "memoryMaps": "memoryMap+",
    "memoryMap": "name addressBlock+ addressUnitBits",
    "addressBlock": "name baseAddress range width usage register+",
    "register": "name description addressOffset size field+",
    "field": "name description bitOffset resets? bitWidth volatile? access modifiedWriteValue?",
    "resets": "reset",
    "reset": "value",
    "model": "views instantiations ports",
    "views": "view+",
    "view": "name envIdentifier componentInstantiationRef",
    "instantiations": "componentInstantiation+",
    "componentInstantiation": "name language moduleName fileSetRef+",
    "fileSetRef": "localName",
    "ports": "port+",
    "port": "name wire",
    "wire": "direction vectors?",
    "vectors": "vector+",
    "vector": "left right",
    "fileSets": "fileSet+",
    "fileSet": "name file+",
    "file": "name fileType isIncludeFile?",
}
NAME, NUMBER = r"[A-Za-z_:][\w.:-]*", r"\d+|'h[0-9a-f]+"
#: Elements with a text, and what it is.
TEXTS = {
    **dict.fromkeys(["vendor", "library", "name", "localName"], NAME),
    **dict.fromkeys(["version", "componentInstantiationRef"], r"[\w.:-]+"),
    **dict.fromkeys(["language", "moduleName"], r"\w+"),
    **dict.fromkeys(["baseAddress", "addressOffset", "bitOffset", "left", "right"], NUMBER),
    **dict.fromkeys(
        ["range", "width", "size", "bitWidth", "addressUnitBits"], r"[1-9]\d*|'h0*[1-9a-f]\w*"
    ),
    **dict.fromkeys(["volatile", "isIncludeFile"], "true|false"),
    "description": "[^ ].*[^ ]",
    "value": rf'"[^"]*"|{NUMBER}',
    "usage": "register",
    "access": "read-only|read-write|write-only",
    "modifiedWriteValue": "oneToClear",
    "direction": "in|out",
    "envIdentifier": r"[\w+*.]*:[\w+*.]*:[\w+*.]*",
    "fileType": "verilogSource|systemVerilogSource|cSource|SDC|user",
}
LIBRARY = {"vendor", "library", "name", "version"}
ATTRIBUTES = {
    "busType": LIBRARY, "abstractionRef": LIBRARY, "memoryMapRef": {"memoryMapRef"},
    "addressSpaceRef": {"addressSpaceRef"},
}  # fmt: skip
#: What the manifest calls an access, and a write that does more than to set bits.
ACCESSES = {
    ("read-only", None): "ro", ("read-write", None): "rw", ("read-write", "oneToClear"): "w1c",
    ("write-only", None): "wo",
}  # fmt: skip


def value_of(text):
    return int(text[2:], 16) if text.startswith("'h") else int(text)


def parsed(text):
    """Return the root, its tags without their namespace, which all of them have."""
    root = ElementTree.fromstring(text)
    for element in root.iter():
        space, _, element.tag = element.tag.rpartition("}")
        assert space == "{" + NAMESPACE
    return root


@pytest.fixture(scope="module", params=SHELLS)
def shell(request):
    """Parameters, options and ports of a shell, and its description."""
    parameters, axi = SHELLS[request.param]
    ports = packaged_ports(packaged_component(parameters, "axi", MANIFEST["hash"], axi), "axi")
    table = replace(axi.registers(parameters), name=NAMES.name)
    return axi, ports, table, parsed(component_xml(MANIFEST, NAMES, "axi", ports, table, axi))


def pattern_of(children):
    """Return the expression for tags, each with a space behind it."""
    tokens = [re.fullmatch(r"([\w|]+)([?+]?)", token).groups() for token in children.split()]
    return "".join(f"(?:(?:{tags}) ){often}" for tags, often in tokens)


def test_elements_stand_where_the_schema_wants_them(shell):
    *_, root = shell
    assert root.tag == "component"
    for element in root.iter():
        tags = "".join(f"{child.tag} " for child in element)
        if element.tag in TEXTS:
            assert not tags
            assert re.fullmatch(TEXTS[element.tag], element.text), (element.tag, element.text)
        else:
            assert re.fullmatch(pattern_of(CHILDREN[element.tag]), tags), (element.tag, tags)
            assert not (element.text or "").strip()
        wanted = {"user"} if element.text == "user" else ATTRIBUTES.get(element.tag, set())
        assert set(element.attrib) == wanted


def test_names_are_unique_and_references_lead_somewhere(shell):
    *_, root = shell
    keyed = ("busInterfaces", "ports", "fileSets", "fileSet", "addressBlock", "register")
    for element in root.iter():
        if element.tag in keyed:
            names = [child.findtext("name") for child in element if len(child)]
            assert len(set(names)) == len(names)
    for kind, reference in (("memoryMap", "memoryMapRef"), ("addressSpace", "addressSpaceRef")):
        there = [each.findtext("name") for each in root.iter(kind)]
        assert [each.get(reference) for each in root.iter(reference)] == there
    sets = {each.findtext("name") for each in root.iter("fileSet")}
    assert {each.text for each in root.iter("localName")} <= sets
    instance = root.findtext("model/instantiations/componentInstantiation/name")
    assert root.findtext("model/views/view/componentInstantiationRef") == instance


def described_ports(root):
    return [
        {
            "name": port.findtext("name"),
            "direction": port.findtext("wire/direction"),
            "bits": int(port.findtext("wire/vectors/vector/left", "0")) + 1,
        }
        for port in root.find("model/ports")
    ]


def interfaces_of(root):
    """Return mode, parameters, and ports by their logical names, of each interface."""
    found = {}
    for each in root.find("busInterfaces"):
        mode = next(child.tag for child in each if child.tag in ("master", "slave"))
        values = {p.findtext("name"): p.findtext("value") for p in each.iter("parameter")}
        pins = {
            one.findtext("logicalPort/name"): one.findtext("physicalPort/name")
            for one in each.iter("portMap")
        }
        kind = each.find("busType").get("name")
        assert each.find(".//abstractionRef").get("name") == f"{kind}_rtl"
        found[each.findtext("name")] = (kind, mode, values, pins)
    return found


def test_ports_are_those_of_the_shell_and_each_is_in_one_interface(shell):
    axi, ports, _, root = shell
    assert described_ports(root) == ports
    interfaces = interfaces_of(root)
    mapped = [name for *_, pins in interfaces.values() for name in pins.values()]
    assert sorted(mapped) == sorted(port["name"] for port in ports)
    directions = {port["name"]: port["direction"] for port in ports}
    for name, (kind, mode, values, pins) in interfaces.items():
        leading = "out" if mode == "master" else "in"
        first = {"axis": "TVALID", "aximm": "AWVALID", "clock": "CLK", "reset": "RST",
                 "interrupt": "INTERRUPT"}[kind]  # fmt: skip
        assert directions[pins[first]] == leading
        if kind == "axis":
            assert set(pins) == {"TDATA", "TKEEP", "TLAST", "TVALID", "TREADY"}
        if kind == "aximm":
            is_lite = name == axi.pins.registers
            assert values == {"PROTOCOL": '"AXI4LITE"' if is_lite else '"AXI4"'}
            assert ("AWLEN" in pins) == (mode == "master") == (not is_lite)
        if kind in ("axis", "aximm"):
            assert all(pin == f"{name}_{logical.lower()}" for logical, pin in pins.items())


def test_every_bus_has_one_clock_and_every_clock_its_reset(shell):
    axi, _, _, root = shell
    interfaces = interfaces_of(root)
    resets = [name for name, (kind, *_) in interfaces.items() if kind == "reset"]
    clocks = {
        name: {key: value.strip('"') for key, value in values.items()}
        for name, (kind, _, values, _) in interfaces.items() if kind == "clock"
    }  # fmt: skip
    assert [each["ASSOCIATED_RESET"] for each in clocks.values()] == resets
    assert all(interfaces[reset][2] == {"POLARITY": '"ACTIVE_LOW"'} for reset in resets)
    buses = [name for name, (kind, *_) in interfaces.items() if kind in ("axis", "aximm")]
    own = [bus for each in clocks.values() for bus in each["ASSOCIATED_BUSIF"].split(":")]
    assert sorted(own) == sorted(buses)
    if axi.has_bus_clock:
        assert clocks[axi.pins.bus_clock]["ASSOCIATED_BUSIF"] == axi.pins.registers
    else:
        assert list(clocks) == [axi.pins.clock]


def test_registers_are_those_of_the_table(shell):
    _, _, table, root = shell
    block = root.find("memoryMaps/memoryMap/addressBlock")
    assert value_of(block.findtext("range")) == 0x1000
    read = [
        {
            "name": register.findtext("name"),
            "address": value_of(register.findtext("addressOffset")),
            "description": register.findtext("description"),
            "fields": [
                {
                    "name": field.findtext("name"),
                    "offset": int(field.findtext("bitOffset")),
                    "bits": int(field.findtext("bitWidth")),
                    "access": ACCESSES[
                        field.findtext("access"), field.findtext("modifiedWriteValue")
                    ],
                    "reset": reset if reset is None else value_of(reset),
                    "description": field.findtext("description"),
                }
                for field in register.iter("field")
                for reset in [field.findtext("resets/reset/value")]
            ],
        }
        for register in block.iter("register")
    ]
    assert read == table.describe()
    volatile = {
        (register.findtext("name"), field.findtext("name"))
        for register in block.iter("register") for field in register.iter("field")
        if field.findtext("volatile") == "true"
    }  # fmt: skip
    assert {("STATUS", "BUSY"), ("ERRORS", "INPUT"), ("TUPLES_R_LO", "VALUE")} & volatile
    assert not {("ID", "MAGIC"), ("CONTROL", "ENABLE"), ("CONTROL", "RESET")} & volatile


def test_memories_are_as_large_as_their_addresses():
    parameters, axi = SHELLS["memories"]
    ports = packaged_ports(packaged_component(parameters, "axi", MANIFEST["hash"], axi), "axi")
    root = parsed(component_xml(MANIFEST, NAMES, "axi", ports, axi.registers(parameters), axi))
    widths = {port["name"]: port["bits"] for port in ports}
    spaces = {
        each.findtext("name"): (value_of(each.findtext("range")), int(each.findtext("width")))
        for each in root.iter("addressSpace")
    }
    assert spaces == {
        f"m_axi_{n}": (1 << widths[f"m_axi_{n}_araddr"], 64) for n in range(2 * parameters.cores)
    }
