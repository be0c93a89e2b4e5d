# SPDX-License-Identifier: Apache-2.0
"""Errors of a graph of streams itself, as opposed to errors in its data."""

from host.errors import FailureError

__all__ = ["GraphError", "LifeCycleError", "ResourceError", "StuckGraphError"]


class LifeCycleError(FailureError):
    """A stream or buffer was used in a state that does not allow it: a programming error."""


class GraphError(FailureError):
    """Streams are connected in a way that cannot run: a programming error."""


class ResourceError(FailureError):
    """There are not enough threads or buffers for the streams' minimum requirements."""


class StuckGraphError(FailureError):
    """No stream of the graph can run, and the graph has not reached its end."""
