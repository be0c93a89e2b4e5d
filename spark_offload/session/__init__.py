# SPDX-License-Identifier: Apache-2.0
"""The Spark session of the commands, its log, its interrupts and its progress."""

from spark_offload.session.spark_session import open_session

__all__ = ["open_session"]
