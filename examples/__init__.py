# SPDX-License-Identifier: Apache-2.0
"""The operators of the appendix of STRETCH, each in a file that can be run."""
