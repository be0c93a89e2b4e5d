# SPDX-License-Identifier: Apache-2.0
"""Rows on their way to an accelerator as tuples, and what is remembered of them."""
