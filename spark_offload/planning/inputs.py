# SPDX-License-Identifier: Apache-2.0
"""The two inputs of a join: what is known of them, and both as one tagged frame."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from host import CountWindow
from host.query.join_query import JoinQuery
from host.reference.side import Side
from spark_offload.cluster import cluster_of
from spark_offload.layout.halos import HaloCounts, Halos, count_halos, time_halos
from spark_offload.layout.key_types import common_type
from spark_offload.layout.order_axis import can_be_cut, window_width
from spark_offload.layout.tagged import TaggedInput, order_frame, tagged_frame, tagged_ranges
from spark_offload.planning.input_plan import NO_ESTIMATE, estimated_bytes, is_plain_read
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
        )

    def profile(self) -> OrderProfile | None:
        """Read how the rows of both inputs lie in time; None if their times cannot be cut."""
        if not can_be_cut(self.order_type):
            return None
        return profile_order(order_frame(*self._tagged_inputs(), self.order_type), 1)

    def known_bytes(self) -> tuple[int | None, int | None]:
        """Return Spark's estimates of the bytes of both inputs, where it has any."""
        sizes = estimated_bytes(self.left), estimated_bytes(self.right)
        left, right = (None if size >= NO_ESTIMATE else size for size in sizes)
        return left, right

    def tagged(self, placement: Placement) -> Tagged:
        """Return the tagged frame, placed as chosen; ranges of rows are counted out here."""
        if placement.starts is not None:
            left, right = self._tagged_inputs()
            halos = self._halos(placement.starts)
            frame = tagged_ranges(
                left,
                right,
                order_type=self.order_type,
                halos=halos,
                partitions=placement.partitions,
            )
            return Tagged(frame, halos.counts)
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

    def _halos(self, starts: tuple[int, ...]) -> Halos:
        times = order_frame(*self._tagged_inputs(), self.order_type)
        how = self.query.how
        if isinstance(self.query.window, CountWindow):
            return count_halos(times, starts, self.query.window.size, how)
        width = window_width(self.query, self.order_type)
        # The last row before a range may belong to another partition, and then says nothing.
        joined = self.query.sorted and not self.query.per_partition
        return time_halos(times, starts, width, how, joined=joined)

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
