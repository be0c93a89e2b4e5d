# SPDX-License-Identifier: Apache-2.0
"""How a query of Spark runs, and the rare words of what it asks."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from host import Ordering, UsageError
from host.query.cores import Controller
from host.query.queries import OnFailure
from host.query.words import RENAMED, Sortedness
from spark_offload.cluster.devices import Devices
from spark_offload.partitioning.placement import PartitionBy

__all__ = ["ASKED", "NOT_ONCE", "Options"]

NOT_ONCE = (
    "pairs='once' goes by the numbers of rows, which Spark does not keep; compare a column that is "
    "unique instead: where='l.id < r.id'."
)
"""Why Spark does not give every two rows once."""

#: The options that belong to what a join asks.
ASKED = ("suffix", "per_window", "sorted", "ordering", "on_failure", "elastic")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the public functions, which take them as keywords.

    Parameters
    ----------
    suffix : str
        Appended to the name of a right column that the left input has too.
    per_window : bool
        With ``advance``, whether a pair comes once for each window that has both of its rows, with
        the columns ``window_start`` and ``window_end`` behind those of the rows; else once.
    sorted : bool or "partitions"
        Declares both inputs sorted by their time columns: a row that goes back in time becomes an
        error. ``"partitions"`` declares each partition of an input sorted by itself: partitions are
        sources of their own, and are merged. Otherwise rows are sorted, silently.
    ordering : Ordering, optional
        Other orders of the results of each partition than by arrival, or a precision that adapts
        itself to a required rate; ``docs/ordering.md`` says what each promises.
    on_failure : str
        What a task does when a core of its accelerator fails: ``"raise"``, ``"report"`` (it goes
        on, and :func:`metrics` says which tuples are missing) or ``"replay"`` (nothing is missing);
        see ``docs/failures.md``. Of streams, only ``"raise"``.
    elastic : Controller or bool
        What chooses how many cores of its accelerator a task uses; True stands for
        :class:`host.ThresholdController`. The answer stays the same; :func:`metrics` says what was
        decided, see ``docs/elastic.md``. Not for streams.
    device : str or list of str, optional
        ``"software:"`` is the software engine, ``"sim:"`` the simulated accelerator that suits the
        query, whose bundle is built when it is first needed, ``"sim:BUNDLE"`` that of a bundle.
        A list is a pool: every task gets one of its devices to itself. ``"resource:NAME"`` are
        devices that Spark assigns to tasks. Left out, what the session's
        ``spark.splitjoin.device``, the variable ``SPLITJOIN_DEVICE`` or Spark's resource
        ``splitjoin`` names, else the software engine. See ``docs/spark-cluster.md``.
    partitions : int, optional
        Number of partitions, each joined by a task with a device of its own. Left out, one for each
        core that Spark has, or fewer if more do not pay; :func:`explain` says why. Of streams, the
        number of groups that have a window of their own in the state; left out, one for each
        partition of the state, which a query that is started again keeps.
    partition_by : "files", "key" or "range", optional
        What the rows are partitioned by: the equal columns, which takes a time-based window, or
        ranges of the time columns, with the rows that the window holds at the start of a range
        sent along. ``"files"`` are such ranges, read by the tasks from Parquet files. Left out,
        these where possible, else the equal columns. See ``docs/spark-batch.md``.
    strict : bool
        Whether it is an error that the accelerator cannot serve. Otherwise the software engine
        joins then, and :func:`explain` and the log say so and why. A window that turns out to
        outgrow the device while rows arrive is then an error too, which says how many rows it
        needs; otherwise the task goes on in software from that row on, and :func:`metrics` and the
        log say so.
    build : bool
        Whether a larger simulated accelerator is built, for device ``"sim:"``, where the default
        one is too small for the window or has too few key fields, and none that serves is here, or
        one that decides ``where`` if nothing else bounds the pairs on both sides. The rows of a
        time-based window are counted for that, in a job of Spark.
    trace : bool
        Whether the device stamps every tuple and result with its clock cycle, which the plan's
        metrics then tell the latency from.
    progress : str, optional
        Folder of :func:`spark_offload.cluster.session.show_progress`.
    """

    suffix: str = "_right"
    per_window: bool = False
    sorted: Sortedness = False
    ordering: Ordering | None = None
    on_failure: str | OnFailure = OnFailure.RAISE
    elastic: Controller | bool | None = None
    device: Devices = None
    partitions: int | None = None
    partition_by: PartitionBy = None
    strict: bool = False
    build: bool = False
    trace: bool = False
    progress: str | None = None

    @classmethod
    def of(cls, function: str, given: Mapping[str, Any], *names: str) -> "Options":
        """Return the options that a function was given as keywords.

        Parameters
        ----------
        function : str
            Its name, for messages.
        given : mapping
            The keywords.
        names : str
            The options that it takes; by default, all.

        Raises
        ------
        UsageError
            If a keyword is none of its options; of a word of before, the error says ours.
        """
        taken = names or tuple(field.name for field in fields(cls))
        for word in given:
            if word in taken:
                continue
            if word == "pairs":
                raise UsageError(NOT_ONCE)
            if word in RENAMED:
                raise UsageError(RENAMED[word].message(word))
            close = get_close_matches(word, taken, 1)
            advice = f"write {close[0]}" if close else f"its options are {', '.join(taken)}"
            raise UsageError(f"{function} has no argument {word}; {advice}.")
        return cls(**given)

    def asked(self) -> dict[str, Any]:
        """Return the words of a :class:`~host.query.queries.Query` among them."""
        return {name: getattr(self, name) for name in ASKED}
