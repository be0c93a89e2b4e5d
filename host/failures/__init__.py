# SPDX-License-Identifier: Apache-2.0
"""What is done about a core that fails, and the record of it."""
