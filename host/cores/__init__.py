# SPDX-License-Identifier: Apache-2.0
"""Which cores of an accelerator store tuples: turns, segments, epochs, cores that have failed."""
