# SPDX-License-Identifier: Apache-2.0
"""Make things before they are needed, in the order in which they will be."""

from concurrent.futures import ThreadPoolExecutor

__all__ = ["Ahead"]


class Ahead:
    """Calls of a function that begin when they are announced, not when their result is needed.

    An error appears where the result is asked for. At the end of the context, calls that have not
    begun are given up.

    Parameters
    ----------
    make : callable
        The function. Its first argument names what it makes; each is made once.
    executor : concurrent.futures.Executor, optional
        What calls the function; by default a thread. It is shut down at the end of the context.
    """

    def __init__(self, make, executor=None):
        self._make = make
        self._made = {}
        self._executor = executor or ThreadPoolExecutor(1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._executor.shutdown(cancel_futures=True)

    def announce(self, name, *arguments):
        """Have a thing made."""
        if name not in self._made:
            self._made[name] = self._executor.submit(self._make, name, *arguments)

    def __call__(self, name, *arguments):
        """Return a thing as soon as it is made, announced or not."""
        self.announce(name, *arguments)
        return self._made[name].result()
