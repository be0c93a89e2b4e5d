# SPDX-License-Identifier: Apache-2.0
"""The circuit of a board under Verilator, served at a pseudo-terminal or at a TCP port."""

__all__: list[str] = []
