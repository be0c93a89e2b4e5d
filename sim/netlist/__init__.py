# SPDX-License-Identifier: Apache-2.0
"""Compare the netlist that is routed with the software device: ``python -m sim netlist``."""
