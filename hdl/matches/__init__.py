# SPDX-License-Identifier: Apache-2.0
"""What a join aggregate has beside a join: matches are reduced where they are found, and merged."""

__all__: list[str] = []
