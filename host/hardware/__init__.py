# SPDX-License-Identifier: Apache-2.0
"""What the host must know of the hardware: where tuples are stored, what a result refers to."""
