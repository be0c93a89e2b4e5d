# SPDX-License-Identifier: Apache-2.0
"""What a caller asks for: the description of a join, and what its parts mean."""
