# SPDX-License-Identifier: Apache-2.0
"""The evaluation: the figures of the SplitJoin paper, section 6, measured on simulated hardware."""
