# SPDX-License-Identifier: Apache-2.0
"""Shells without memory ports say so."""

import pytest

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters
from hdl.shells.uart_shell import UartShell

EXTERNAL = JoinParameters(cores=1, store="external", memory_width=32, memory_burst=4)


def test_a_uart_shell_has_no_ports_for_external_memory():
    with pytest.raises(ValueError, match="A UART shell has no ports for the external memory"):
        UartShell(EXTERNAL, digest="0" * 64, divisor=4)


def test_a_bundle_of_external_windows_has_no_axi_shell(tmp_path):
    with pytest.raises(ValueError, match="An AXI shell has no ports for the external memory"):
        write_bundle(EXTERNAL, tmp_path / "bundle", shells=["axi"])
    assert not (tmp_path / "bundle").exists()
