# SPDX-License-Identifier: Apache-2.0
"""Call a function for many things in several threads, and stop at once when interrupted."""

from collections import deque
from concurrent.futures import Future, as_completed
from contextlib import suppress
from threading import Thread

__all__ = ["side_by_side"]


def side_by_side(call, items, *, workers, advance):
    """Return the result of ``call`` for each item, in the order of the items.

    After an error, calls that have begun come to their end, and the others are given up. The
    threads are daemons, which those of an executor are not: a call may take an hour, and a program
    that is interrupted ends without waiting for it.

    Parameters
    ----------
    call : callable
        Called with an item, in a thread.
    items : collection
        Hashable items, in the order in which their calls begin.
    workers : int
        Calls at the same time.
    advance : callable
        Called in this thread with the number of calls that are done, and that there are.
    """
    results = {item: Future() for item in items}
    waiting = deque(results.items())

    def serve():
        with suppress(IndexError):  # raised by an empty deque alone: a future takes other errors
            while True:
                answer(*waiting.popleft())

    def answer(item, result):
        try:
            result.set_result(call(item))
        except BaseException as error:
            result.set_exception(error)

    threads = [Thread(target=serve, daemon=True) for _ in range(min(workers, len(items)))]
    advance(0, len(items))
    for thread in threads:
        thread.start()
    try:
        for done, result in enumerate(as_completed(results.values()), 1):
            if result.exception() is not None:
                waiting.clear()
                for thread in threads:
                    thread.join()
            result.result()
            advance(done, len(items))
    finally:
        waiting.clear()
    return {item: result.result() for item, result in results.items()}
