# SPDX-License-Identifier: Apache-2.0
"""The netlist that is routed, run against the software device: ``python -m sim netlist``."""
