# SPDX-License-Identifier: Apache-2.0
"""What streams are built of: registers, forks, queues."""
