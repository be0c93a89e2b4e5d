# SPDX-License-Identifier: Apache-2.0
"""Long runs of joins under many epochs, compared with the reference join."""
