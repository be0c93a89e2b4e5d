# SPDX-License-Identifier: Apache-2.0
"""Which tuples a region holds."""
