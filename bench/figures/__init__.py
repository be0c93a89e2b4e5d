# SPDX-License-Identifier: Apache-2.0
"""The measured figures of the kit, one module per subject, and the registry that measures them."""

__all__: list[str] = []
