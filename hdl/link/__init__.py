# SPDX-License-Identifier: Apache-2.0
"""The board's end of a byte link that loses and repeats no word (`docs/link.md`)."""
