# SPDX-License-Identifier: Apache-2.0
"""The two inputs of a join: what is known of them, and both as one tagged frame."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from host import CountWindow
from host.query.queries import JoinQuery
from host.reference.arrivals import Side
from host.reference.types import JoinType
from spark_offload.cluster import cluster_of
from spark_offload.layout.cuts import cuts_literal
from spark_offload.layout.halos import HaloCounts, count_halos
from spark_offload.layout.key_types import common_type
from spark_offload.layout.order_axis import can_be_cut, window_width
from spark_offload.layout.tagged import TaggedInput, order_frame, tagged_frame, tagged_ranges
from spark_offload.planning.input_plan import (
    NO_ESTIMATE,
    estimated_bytes,
    estimated_rows,
    is_plain_read,
)
from spark_offload.planning.lazy_cuts import lazy_cuts
from spark_offload.planning.placement import Facts, Placement
from spark_offload.planning.profile import OrderProfile, profile_order

__all__ = ["JoinInputs", "Tagged"]


@dataclass(frozen=True)
class Tagged:
    """Rows of both inputs in the order of arrival.

    Parameters
    ----------
    frame : DataFrame
        The rows; see :mod:`spark_offload.layout.tagged`.
    halos : HaloCounts or None
        For a count-based window over ranges of time: how large the halos are.
    """

    frame: DataFrame
    halos: HaloCounts | None = None


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of one join.

    Parameters
    ----------
    left, right : DataFrame
        The frames, checked to have the columns of the query.
    query : JoinQuery
        What is joined.
    """

    left: DataFrame
    right: DataFrame
    query: JoinQuery

    @property
    def order_type(self) -> DataType:
        """Common type of the order columns."""
        left, right = self.query.order
        return common_type(self.left.schema[left].dataType, self.right.schema[right].dataType)

    def facts(self) -> Facts:
        """Return what the placement of the rows is chosen by."""
        order_type = self.order_type
        cut = can_be_cut(order_type)
        left, right = self._tagged_inputs()
        return Facts(
            cores=cluster_of(self.left.sparkSession).cores,
            sizes=lambda: (estimated_bytes(self.left), estimated_bytes(self.right)),
            plain=lambda: is_plain_read(self.left) and is_plain_read(self.right),
            width=window_width(self.query, order_type) if cut and self.query.is_timed else None,
            order_type=None if cut else order_type.simpleString(),
            profile=lambda ranges: profile_order(order_frame(left, right, order_type), ranges),
            rows=self._estimated_rows,
        )

    def profile(self, ranges: int = 1) -> OrderProfile | None:
        """Read how the rows of both inputs lie in time; None if their times cannot be cut.

        Parameters
        ----------
        ranges : int
            Most ranges that the profile will be asked for.
        """
        if not can_be_cut(self.order_type):
            return None
        return profile_order(order_frame(*self._tagged_inputs(), self.order_type), ranges)

    def known_bytes(self) -> tuple[int | None, int | None]:
        """Return Spark's estimates of the bytes of both inputs, where it has any."""
        sizes = estimated_bytes(self.left), estimated_bytes(self.right)
        left, right = (None if size >= NO_ESTIMATE else size for size in sizes)
        return left, right

    def tagged(self, placement: Placement) -> Tagged:
        """Return the tagged frame, placed as chosen; ranges of rows are counted out here."""
        if placement.rule is not None or placement.starts is not None:
            return self._cut(placement)
        left, right = self._tagged_inputs(placement.keys)
        key_types = [
            common_type(self.left.schema[own].dataType, self.right.schema[other].dataType)
            for own, other in zip(*placement.keys, strict=True)
        ]
        return Tagged(
            tagged_frame(
                left,
                right,
                order_type=self.order_type,
                key_types=key_types,
                partitions=placement.partitions,
                direct=placement.direct,
            )
        )

    def _cut(self, placement: Placement) -> Tagged:
        """Return the tagged frame in ranges of time."""
        left, right = self._tagged_inputs()
        order_type, query = self.order_type, self.query
        times = order_frame(left, right, order_type)
        counts = None
        if placement.rule is not None:
            cuts = lazy_cuts(times, placement.rule, window_width(query, order_type))
            ranges = placement.rule.ranges
        else:
            assert placement.starts is not None
            assert isinstance(query.window, CountWindow)  # others are cut when an action runs
            halos = count_halos(times, placement.starts, query.window.size, query.how)
            cuts, ranges, counts = cuts_literal(halos), len(halos.starts) + 1, halos.counts
        frame = tagged_ranges(
            left,
            right,
            order_type=order_type,
            cuts=cuts,
            ranges=ranges,
            partitions=placement.partitions,
            alone=query.is_timed and query.how is not JoinType.INNER,
        )
        return Tagged(frame, counts)

    def _estimated_rows(self) -> int | None:
        left, right = (estimated_rows(frame) for frame in (self.left, self.right))
        return None if left is None or right is None else left + right

    def _tagged_inputs(
        self, keys: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    ) -> tuple[TaggedInput, TaggedInput]:
        left, right = (
            TaggedInput(
                frame,
                self.query.order[side],
                keys[side],
                self.query.how.tracks(side) and not self.query.how.wants_matched,
            )
            for side, frame in zip(Side, (self.left, self.right), strict=True)
        )
        return left, right
