# SPDX-License-Identifier: Apache-2.0
"""Measurements of the kit, which only a checkout has: ``python -m bench --help``."""
