# SPDX-License-Identifier: Apache-2.0
"""How far the tasks of a local Spark have come, told through small files in one folder."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
import shutil
import sys
import tempfile
import threading

__all__ = ["show_progress", "tuples_writer"]

SECONDS = 0.2


def tuples_writer(folder: str | None, partition: int) -> Callable[[int], None]:
    """Return the function by which a task tells how many tuples it has sent to its device."""

    def tell(tuples: int) -> None:
        if folder is None:
            return
        # Nobody may care any more, or the driver may be on another machine.
        if Path(folder).is_dir():
            Path(folder, str(partition)).write_text(str(tuples))

    return tell


@contextmanager
def show_progress(total: int, title: str, *, shown: bool | None = None) -> Iterator[str]:
    """Show a bar of tuples joined while the body runs; yield the folder that tasks write to.

    Parameters
    ----------
    total : int
        Tuples in all.
    title : str
        What is going on.
    shown : bool, optional
        Whether to show the bar; left out, if standard error is a terminal and ``tqdm`` is there.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        shown = False
    if shown is None:
        shown = sys.stderr.isatty()
    with tempfile.TemporaryDirectory(prefix="splitjoin-progress-") as folder:
        if not shown:
            yield folder
            return
        ended = threading.Event()
        # A terminal that does not tell its size would get a bar of no size.
        size = shutil.get_terminal_size()
        with tqdm(
            total=total,
            desc=title,
            unit=" tuples",
            unit_scale=True,
            ncols=min(100, size.columns),
            nrows=size.lines,
        ) as bar:
            watcher = threading.Thread(
                target=_follow, args=(folder, bar, ended), name="splitjoin-progress", daemon=True
            )
            watcher.start()
            try:
                yield folder
            finally:
                ended.set()
                watcher.join()
                bar.update(min(_told(folder), total) - bar.n)


def _follow(folder: str, bar: object, ended: threading.Event) -> None:
    while not ended.wait(SECONDS):
        told = _told(folder)
        total, shown = getattr(bar, "total", told), getattr(bar, "n", 0)
        bar.update(max(0, min(told, total) - shown))  # type: ignore[attr-defined]


def _told(folder: str) -> int:
    """Return the sum of what the tasks have told."""
    texts = [path.read_text() for path in Path(folder).iterdir()]
    return sum(int(text) for text in texts if text.isdigit())
