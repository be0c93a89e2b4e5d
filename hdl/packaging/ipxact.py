# SPDX-License-Identifier: Apache-2.0
"""The description of a packaged AXI shell in IP-XACT, IEEE 1685-2014."""

from xml.etree import ElementTree

from hdl.registers.bus import ADDRESS_BITS, DATA_BITS

from .headers import what_it_is

__all__ = ["NAMESPACE", "component_xml"]

#: Namespace of all elements.
NAMESPACE = "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"
#: Vendor, library and version of the types of bus interfaces, as Vivado's catalog has them.
INTERFACES = {"vendor": "xilinx.com", "library": "interface", "version": "1.0"}
SIGNALS = INTERFACES | {"library": "signal"}
#: What an access of a field is (:data:`hdl.registers.table.ACCESSES`), and what a write does to it.
ACCESSES = {
    "ro": ("read-only", None),
    "rw": ("read-write", None),
    "w1c": ("read-write", "oneToClear"),
    "wo": ("write-only", None),
}
#: Sets of the files of a package: what their names end with, and their types.
FILE_SETS = {
    "rtl": {".v": "verilogSource", "_pkg.sv": "systemVerilogSource"},
    "constraints": {".xdc": "xdc", "_ooc.xdc": "xdc", ".sdc": "SDC"},
    "headers": {"_registers.h": "cSource", "_words.h": "cSource"},
}
#: Types of files that IP-XACT has no name for.
OWN_TYPES = ("xdc",)


def node(tag, *inside, **attributes):
    """Return an element with a text, or with elements; those that are None are left out."""
    element = ElementTree.Element(f"ipxact:{tag}", attributes)
    for each in inside:
        if isinstance(each, ElementTree.Element):
            element.append(each)
        elif each is not None:
            element.text = str(each)
    return element


def number(value):
    """Return a number as an expression of IP-XACT, which are those of SystemVerilog."""
    return f"'h{value:x}"


def interface(name, kind, types, mode, pins, **parameters):
    """Return a bus interface.

    Parameters
    ----------
    name, kind : str
        Its name, and that of its type: ``"axis"``.
    types : dict of str to str
        :data:`INTERFACES` or :data:`SIGNALS`.
    mode : Element
        ``master`` or ``slave``.
    pins : dict of str to str
        Ports by their names in the type: ``{"TDATA": "s_axis_tdata", …}``.
    **parameters : str
        What Vivado wants to know of the interface.
    """
    maps = [
        node("portMap", node("logicalPort", node("name", logical)),
             node("physicalPort", node("name", port)))
        for logical, port in pins.items()
    ]  # fmt: skip
    values = [
        node("parameter", node("name", key), node("value", f'"{value}"'))
        for key, value in parameters.items()
    ]
    return node(
        "busInterface",
        node("name", name),
        node("busType", name=kind, **types),
        node("abstractionTypes", node(
            "abstractionType",
            node("abstractionRef", name=f"{kind}_rtl", **types),
            node("portMaps", *maps),
        )),
        mode,
        node("parameters", *values) if values else None,
    )  # fmt: skip


def buses_of(ports, axi):
    """Return the pins of each AXI bus by its name, in the order of the ports.

    Parameters
    ----------
    ports : list of dict
        Name, direction and width of every port of the top module.
    axi : AxiOptions

    Returns
    -------
    dict of str to dict of str to dict
        Ports by the names that AXI has for them: ``{"s_axis": {"TDATA": {…}, …}, …}``.
    """
    single = {"interrupt", *(pin for clock in axi.clocks for pin in clock)}
    buses = {}
    for port in ports:
        if port["name"] not in single:
            bus, _, signal = port["name"].rpartition("_")
            buses.setdefault(bus, {})[signal.upper()] = port
    return buses


def bus_interfaces(buses, axi):
    """Yield the interface of each bus, of the clocks with their resets, and of the interrupt."""
    registers = axi.pins.registers
    for bus, pins in buses.items():
        protocol, mode = {}, node("master" if bus.startswith("m_") else "slave")
        if bus == registers:
            protocol = {"PROTOCOL": "AXI4LITE"}
            mode.append(node("memoryMapRef", memoryMapRef=registers))
        elif "ARADDR" in pins:
            protocol = {"PROTOCOL": "AXI4"}
            mode.append(node("addressSpaceRef", addressSpaceRef=bus))
        kind = "aximm" if protocol else "axis"
        names = {logical: port["name"] for logical, port in pins.items()}
        yield interface(bus, kind, INTERFACES, mode, names, **protocol)
    for clock, reset in axi.clocks:
        own = [
            bus for bus in buses
            if not axi.has_bus_clock or (bus == registers) == (clock == axi.pins.bus_clock)
        ]  # fmt: skip
        yield interface(
            clock, "clock", SIGNALS, node("slave"), {"CLK": clock},
            ASSOCIATED_BUSIF=":".join(own), ASSOCIATED_RESET=reset,
        )  # fmt: skip
        yield interface(
            reset, "reset", SIGNALS, node("slave"), {"RST": reset}, POLARITY="ACTIVE_LOW"
        )
    yield interface(
        "interrupt", "interrupt", SIGNALS, node("master"), {"INTERRUPT": "interrupt"},
        SENSITIVITY="LEVEL_HIGH",
    )  # fmt: skip


def address_spaces(buses):
    """Return the memory behind each AXI4 master, or None if there is no such master."""
    spaces = [
        node("addressSpace", node("name", bus), node("range", number(1 << pins["ARADDR"]["bits"])),
             node("width", pins["RDATA"]["bits"]))
        for bus, pins in buses.items() if bus.startswith("m_") and "ARADDR" in pins
    ]  # fmt: skip
    return node("addressSpaces", *spaces) if spaces else None


def field_node(field):
    """Return the element of a :class:`hdl.registers.table.Field`.

    It is volatile if a read may find another value than what was written or was there on reset.
    """
    access, modified = ACCESSES[field.access]
    known = field.reset is not None
    is_volatile = field.access == "w1c" or not known
    return node(
        "field",
        node("name", field.name),
        node("description", field.description),
        node("bitOffset", field.offset),
        node("resets", node("reset", node("value", number(field.reset)))) if known else None,
        node("bitWidth", field.bits),
        node("volatile", "true") if is_volatile else None,
        node("access", access),
        modified and node("modifiedWriteValue", modified),
    )


def memory_map(name, table):
    """Return the element with all registers of a :class:`hdl.registers.table.RegisterTable`."""
    registers = [
        node(
            "register",
            node("name", register.name),
            node("description", register.description),
            node("addressOffset", number(register.address)),
            node("size", DATA_BITS),
            *(field_node(field) for field in register.fields),
        )
        for register in table.registers
    ]
    block = node(
        "addressBlock", node("name", "registers"), node("baseAddress", number(0)),
        node("range", number(1 << ADDRESS_BITS)), node("width", DATA_BITS),
        node("usage", "register"), *registers,
    )  # fmt: skip
    return node("memoryMap", node("name", name), block, node("addressUnitBits", 8))


def port_node(port):
    """Return the element of a port; one of a single bit is no vector."""
    vector = node("vector", node("left", port["bits"] - 1), node("right", 0))
    return node(
        "port",
        node("name", port["name"]),
        node("wire", node("direction", port["direction"]),
             node("vectors", vector) if port["bits"] > 1 else None),
    )  # fmt: skip


def model(top, ports):
    """Return the element with the one view, its module and the ports."""
    files = [node("fileSetRef", node("localName", name)) for name in ("rtl", "constraints")]
    return node(
        "model",
        node("views", node(
            "view", node("name", "rtl"), node("envIdentifier", "Verilog::"),
            node("componentInstantiationRef", "rtl"),
        )),
        node("instantiations", node(
            "componentInstantiation", node("name", "rtl"), node("language", "Verilog"),
            node("moduleName", top), *files,
        )),
        node("ports", *map(port_node, ports)),
    )  # fmt: skip


def file_node(name, kind):
    """Return the element of a file."""
    user = {"user": kind} if kind in OWN_TYPES else {}
    is_header = node("isIncludeFile", "true") if name.endswith(".h") else None
    return node(
        "file", node("name", name), node("fileType", "user" if user else kind, **user), is_header
    )


def component_xml(manifest, names, shell, ports, table, axi):
    """Return the text of the description, to stand in the folder of the package.

    Kactus2 reads this version of IP-XACT. Vivado's catalog has an earlier one, which its script
    makes; the types of the interfaces and their parameters are the same.

    Parameters
    ----------
    manifest : dict
    names : PackageNames
    shell : str
    ports : list of dict
        Name, direction and width of every port of the top module.
    table : RegisterTable
        Registers of the shell.
    axi : AxiOptions
        What the shell looks like from outside.
    """
    buses = buses_of(ports, axi)
    file_sets = [
        node("fileSet", node("name", name),
             *(file_node(f"{names.name}{end}", kind) for end, kind in ends.items()))
        for name, ends in FILE_SETS.items()
    ]  # fmt: skip
    root = node(
        "component",
        node("vendor", "splitjoin-kit"),
        node("library", "accelerator"),
        node("name", names.name),
        node("version", manifest["kit"]),
        node("busInterfaces", *bus_interfaces(buses, axi)),
        address_spaces(buses),
        node("memoryMaps", memory_map(axi.pins.registers, table)),
        model(names.top(shell), ports),
        node("fileSets", *file_sets),
        node("description", f"{what_it_is(manifest)}, hash {manifest['hash']}"),
    )
    root.set("xmlns:ipxact", NAMESPACE)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
