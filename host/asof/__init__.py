# SPDX-License-Identifier: Apache-2.0
"""As-of joins on the host: each left row with the right row that is closest to it in time."""
