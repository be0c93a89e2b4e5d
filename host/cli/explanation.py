# SPDX-License-Identifier: Apache-2.0
"""What is said of a join before it runs: query, device, encoding, and what the cost model says."""

import numpy as np
import pyarrow as pa

from host.columns.encoding import EncodingPlan, arrange, plan_tables
from host.devices import Device
from host.devices.bundles import SOFTWARE, known_accelerator
from host.devices.software import SOFTWARE_MANIFEST
from host.protocol.configuration import lacking
from host.protocol.cost_model import JoinSize, describe_latency, estimated_cycles, mean_of_last
from host.protocol.manifest import Manifest
from host.protocol.segments import hardware_time
from host.query.queries import Query
from host.reference.window import CountWindow
from host.session.join import Join

__all__ = [
    "cost",
    "explain",
    "size_of_join",
    "windows_of_join",
]


def explain(join: Join, size: JoinSize) -> str:
    """Describe how ``join``, of such a size, is run."""
    streams = [f"streams  {line}" for line in join.describe().splitlines()]
    return "\n".join([_heading(join.query, join.device, join.plan, size), *streams])


def _heading(query: Query, device: Device, plan: EncodingPlan, size: JoinSize) -> str:
    """Describe the query, the device and the encoding of the columns."""
    manifest = device.manifest
    storage = manifest.storage
    cores = f"{storage.cores} core{'s' if storage.cores > 1 else ''}"
    lines = [
        f"query    {query}",
        f"device   {device.uri}: {cores} x {storage.sub_window} tuples a side",
        f"window   {plan.window}, of {manifest.capacity} tuples at most",
        f"order    {query.ordering.meaning}",
    ]
    for field in plan.fields:
        bounds = f"{field.bounds.low} .. {field.bounds.high}"
        lines.append(f"field    {field.name}: {field.meaning}; difference {bounds}")
    checked = [str(term.term) for term in plan.rough_terms]
    checked += [] if plan.condition is None else [plan.condition.text]
    if checked:
        lines.append(f"checked  by the host, on the pairs that are found: {' and '.join(checked)}")
    if device.is_software_engine:
        lines.append("lacks    on_failure and elastic need an accelerator: --device sim: has one")
    elif lacks := lacking(manifest):
        lines.append(f"lacks    {'; '.join(lacks)}")
    unused = [key.name for key in manifest.keys[len(plan.fields) :]]
    if unused:
        lines.append(f"unused   {', '.join(unused)}")
    return "\n".join([*lines, *cost(query, device, size)])


def cost(query: Query, device: Device, size: JoinSize) -> list[str]:
    """Say how long it takes by the cost model: on the device, or on the accelerator in its place.

    A model of a bundle in software has no cost; the accelerator is the one that ``sim:`` would be.
    """
    manifest, what = device.manifest, "cycles   at"
    if device.is_software_engine:
        found = known_accelerator(query)
        if found is None:
            return ["cycles   not known: no accelerator is here; --device sim: builds one"]
        manifest, what = found, "cycles   on the accelerator (sim:) at"
    elif device.uri.startswith(SOFTWARE):
        return []
    cycles = estimated_cycles(manifest, size, query.ordering)
    least = hardware_time(cycles, manifest) or f"{cycles:,} cycles"
    return [
        f"{what} least {least}, by the cost model; more where many rows match",
        f"latency  {describe_latency(manifest, size.windows)}",
    ]


def size_of_join(left: pa.Table, right: pa.Table, query: Query) -> JoinSize:
    """Return how many rows there are, and how many are in a window on average as a row comes."""
    means = tuple(mean for mean, _ in windows_of_join(left, right, query))
    return JoinSize((left.num_rows, right.num_rows), (means[0], means[1]))


def windows_of_join(left: pa.Table, right: pa.Table, query: Query) -> list[tuple[float, int]]:
    """Return, for each side, how many rows its window holds on average and at the most.

    Parameters
    ----------
    left, right : pa.Table
        All rows; only their order columns are looked at.
    query : Query
        The join.
    """
    if query.rows is not None:
        counts = left.num_rows, right.num_rows
        return [(mean_of_last(query.rows, count), min(query.rows, count)) for count in counts]
    asked = Query(time=query.time, within=query.within, sorted=query.sorted)
    plan = plan_tables(left, right, asked, Manifest.load(SOFTWARE_MANIFEST))
    assert not isinstance(plan.window, CountWindow)
    times = arrange(plan, left, right).times
    life = np.uint64(min(int(plan.window.lifespan), (1 << 64) - 1))
    found = []
    for mine, others in (times, times[::-1]):
        first = np.where(others > life, others - life, np.uint64(0))
        held = np.searchsorted(mine, others, side="right") - np.searchsorted(mine, first)
        found.append((float(held.mean()), int(held.max())) if len(held) else (0.0, 0))
    return found
