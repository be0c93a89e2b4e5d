# SPDX-License-Identifier: Apache-2.0
"""The command ``splitjoin``, which leads to the commands of the kit's four packages."""

__all__: list[str] = []
