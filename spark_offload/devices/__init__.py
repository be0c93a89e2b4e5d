# SPDX-License-Identifier: Apache-2.0
"""Where the tasks of a join get their devices from."""
