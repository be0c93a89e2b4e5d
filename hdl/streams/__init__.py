# SPDX-License-Identifier: Apache-2.0
"""Building blocks for streams: registers, forks, queues."""
