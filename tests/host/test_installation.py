# SPDX-License-Identifier: Apache-2.0
"""Messages name commands and extras as the user's kit has them."""

import ast
import re

import pytest

from hdl import installation as hdl_installation
from hdl.fpga.tools import ToolError, find_tool
from host import installation
from host.errors import CapacityError, unusable_uri
from host.installation import command, find_checkout, how_to_get

#: What only a checkout has.
OF_A_CHECKOUT = re.compile(r"python -m (host|hdl|sim|spark_offload)\b|\bmake setup")
#: Where such texts are at home: names of commands by default, and the list of tools.
AT_HOME = {
    "host/__main__.py",
    "host/devices/bundles.py",
    "host/cli/doctor.py",
    "spark_offload/__main__.py",
}


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Let the kit look as if pip had installed it."""
    monkeypatch.setattr(installation, "__file__", str(tmp_path / "host" / "installation.py"))
    monkeypatch.setattr(hdl_installation, "__file__", str(tmp_path / "hdl" / "installation.py"))


def test_a_checkout_is_called_by_its_packages(root):
    assert find_checkout() == root
    assert command("sim build X") == "python -m sim build X"
    assert how_to_get("fpga", "setup-fpga") == "make setup-fpga"


def test_an_installed_kit_is_called_by_its_command(installed, monkeypatch):
    assert find_checkout() is None
    assert command("sim build X") == "splitjoin sim build X"
    assert how_to_get("fpga", "setup-fpga") == "pip install 'splitjoin-kit[fpga]'"
    assert "`splitjoin sim build --output BUNDLE`" in str(unusable_uri("x:", "is unknown"))
    assert "`splitjoin sim build --preset" in str(CapacityError(9, 3))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match=r"get it with: pip install 'splitjoin-kit\[fpga\]'"):
        find_tool("no-such-tool")


def texts_of(path):
    """Yield the strings of a module that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"), path)
    said = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value, node.lineno


@pytest.mark.parametrize("package", ["host", "spark_offload"])
def test_no_message_takes_a_checkout_for_granted(root, package):
    found = [
        f"{path.relative_to(root)}:{line}: {text}"
        for path in sorted((root / package).rglob("*.py"))
        if path.relative_to(root).as_posix() not in AT_HOME
        for text, line in texts_of(path)
        if OF_A_CHECKOUT.search(text)
    ]
    assert found == [], "ask host.installation"
