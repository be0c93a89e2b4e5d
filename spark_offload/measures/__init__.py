# SPDX-License-Identifier: Apache-2.0
"""What tasks measure, how it reaches the driver, and how a notebook shows it."""
