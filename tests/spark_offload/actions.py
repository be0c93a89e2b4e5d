# SPDX-License-Identifier: Apache-2.0
"""Run frames whose tasks may fail."""

from spark_offload import task_error

__all__ = ["act"]


def act(frame):
    """Collect a frame; raise the error of this kit that its task stopped with."""
    try:
        return frame.collect()
    except Exception as error:
        raise task_error(error) from error
