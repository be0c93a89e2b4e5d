# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a graph of streams itself, as opposed to with the data in it."""

from host.errors import FailureError

__all__ = ["GraphError", "LifeCycleError", "ResourceError", "StuckGraphError"]


class LifeCycleError(FailureError):
    """A stream or buffer was used in a state that does not allow it: a mistake in the program."""


class GraphError(FailureError):
    """Streams are wired in a way that cannot run: a mistake in the program."""


class ResourceError(FailureError):
    """There are not enough threads or buffers for what the streams need at least."""


class StuckGraphError(FailureError):
    """No stream of the graph can move, and the graph has not reached its end."""
