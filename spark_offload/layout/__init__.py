# SPDX-License-Identifier: Apache-2.0
"""How the rows of both inputs are laid out for an accelerator, as expressions of Spark."""
