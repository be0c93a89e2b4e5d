# SPDX-License-Identifier: Apache-2.0
"""What has been sent to the machines of one session, remembered for as long as the session is."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
import shutil
import tempfile
from threading import Lock
from weakref import WeakKeyDictionary, finalize

from host import FailureError

__all__ = ["Shipments", "shipments_of"]

SECONDS = 600.0
"""How long a thread waits for another one that is sending the same content."""


class Shipments:
    """Sends each content once, however many threads ask for it.

    Content counts as sent when the sending has returned. A thread that asks meanwhile waits; after
    an error the next one that asks sends it again.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)
        self._sent: set[str] = set()
        # Executors may fetch files from here for as long as the session lives.
        self._folder = Path(tempfile.mkdtemp(prefix="splitjoin-"))
        finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def send_once(self, name: str, send: Callable[[Path], None]) -> None:
        """Call ``send`` unless ``name`` has been sent.

        Parameters
        ----------
        name : str
            Tells the content from all other content.
        send : callable
            Sends it, from a file that it makes in the folder that it is given. The folder is the
            same when it is called again, as Spark serves a file name from one path only.

        Raises
        ------
        FailureError
            If another thread has been sending the content for too long.
        """
        with self._guard:
            lock = self._locks[name]
        if not lock.acquire(timeout=SECONDS):
            raise FailureError(
                f"{name!r} was not sent to the executors: another thread has been sending it for "
                f"{SECONDS:.0f} s; see whether the Spark session still answers, and try again."
            )
        try:
            if name not in self._sent:
                folder = self._folder / name
                folder.mkdir(exist_ok=True)
                send(folder)
                self._sent.add(name)
        finally:
            lock.release()


_guard = Lock()
_of_owner: WeakKeyDictionary[object, Shipments] = WeakKeyDictionary()


def shipments_of(owner: object) -> Shipments:
    """Return what has been sent to the machines that ``owner``, a context or a session, stands for.

    It is forgotten with the owner: a later one that happens to have the same name begins anew.
    """
    with _guard:
        shipments = _of_owner.get(owner)
        if shipments is None:
            shipments = _of_owner[owner] = Shipments()
        return shipments
