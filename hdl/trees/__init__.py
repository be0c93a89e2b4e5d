# SPDX-License-Identifier: Apache-2.0
"""The trees around the cores: words go down in order, results come back in order."""
