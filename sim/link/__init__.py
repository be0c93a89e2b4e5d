# SPDX-License-Identifier: Apache-2.0
"""Both ends of a link, circuit and Python, and a line between them that damages bytes."""
