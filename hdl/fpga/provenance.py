# SPDX-License-Identifier: Apache-2.0
"""Provenance of a report: the programs with their versions, and the hash of the design."""

from dataclasses import asdict, dataclass
import hashlib
import os
from pathlib import Path
import re
import shutil
import subprocess

from hdl.verilog.conversion import to_verilog

from .shell import SHELL, RoutingShell
from .tools import NEXTPNR, VARIABLES, YOSYS, find_tool, package_version

__all__ = ["Program", "commit", "design_hash", "identify", "routed_verilog"]

ROOT = Path(__file__).parents[2]
#: Where the sources of the tools are, for readers who build one.
SOURCES = {
    YOSYS: "https://github.com/YosysHQ/yosys",
    NEXTPNR: "https://github.com/YosysHQ/nextpnr",
}
#: Lock file with the versions that ``make setup-fpga`` installs.
LOCK = ROOT / "requirements-fpga.lock"


@dataclass(frozen=True)
class Program:
    """A program as a report names it.

    Parameters
    ----------
    name : str
        Name of the package, or of the executable that an environment variable selects.
    version : str
        Version that the package, or the executable, reports.
    release : str
        Upstream release that it was built from, such as ``"0.11.1"``.
    locked : bool
        Whether it is the locked package, which every reader gets in the same form.
    source : str
        How a reader gets it.
    """

    name: str
    version: str
    release: str
    locked: bool
    source: str

    def to_dict(self):
        """Return the program as JSON-compatible values."""
        return asdict(self)


def release_of(version):
    """Return the release within the version of a program or package, or the whole version."""
    numbers = re.search(r"\d+\.\d+(\.[1-9]\d*)?(-\d+-g[0-9a-f]+)?", version)
    return numbers[0] if numbers else version


def locked_version(name):
    """Return the version of a package in the lock file, or None without one."""
    if not LOCK.is_file():
        return None
    found = re.search(rf"^{re.escape(name)}==(\S+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    return found and found[1]


def identify(name):
    """Return the :class:`Program` that runs as tool ``name``.

    An environment variable may select another program for a tool; a report then names that one.
    """
    if os.environ.get(VARIABLES[name]):
        chosen = find_tool(name)
        answer = subprocess.run([chosen, "--version"], capture_output=True, text=True, check=False)
        said = (answer.stdout + answer.stderr).strip()
        named = re.search(r"\(Version (\S+)\)", said)  # the form of nextpnr
        version = named[1] if named else said or "unknown"
        release = release_of(version)
        source = (
            f"built from the sources of {release} ({SOURCES[name]}) and named by "
            f"{VARIABLES[name]}; its clocks differ from those of the package"
        )
        return Program(Path(chosen).name, version, release, False, source)
    version = package_version(name)
    locked = version == locked_version(name)
    source = "make setup-fpga" if locked else f"pip install {name}=={version}"
    return Program(name, version, release_of(version), locked, source)


def routed_verilog(parameters, device, inputs=1):
    """Return the Verilog that is synthesized and routed: the accelerator in its shell.

    With more than one of the ``inputs``, their merge stands in front of the accelerator.
    """
    return to_verilog(RoutingShell(parameters, inputs=inputs), name=SHELL, platform=device)


def design_hash(verilog):
    """Return the hash that identifies the design of a report."""
    return hashlib.sha256(verilog.encode()).hexdigest()


def commit():
    """Return the commit of this checkout, or None outside of git.

    The commit is marked ``-dirty`` if files of ``hdl`` differ from it.
    """
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return None

    def ask(*arguments):
        done = subprocess.run(
            [git, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = "-dirty" if ask("status", "--porcelain", "--", "hdl") else ""
    head = ask("rev-parse", "--short", "HEAD")
    return head + changed if head else None
