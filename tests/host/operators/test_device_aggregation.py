# SPDX-License-Identifier: Apache-2.0
"""An aggregation on the host or on an accelerator, which is closed whatever happens."""

import pytest

from host.devices.waiting import Work
from host.errors import AcceleratorLimitError
from host.operators import aggregate
from host.operators.aggregate import WindowAggregation
from tests.host.operators.device_tables import SCHEMA, query
from tests.host.operators.small_aggregate import PARAMETERS, ModelDevice, manifest_of


@pytest.fixture
def opened(monkeypatch):
    """Devices that have been opened and not closed."""
    devices = []

    class Noted(ModelDevice):
        def __init__(self, uri):
            super().__init__()
            devices.append(self)

        def close(self):
            devices.remove(self)

    monkeypatch.setattr(aggregate, "open_aggregate", Noted)
    return devices


def test_a_device_is_open_as_long_as_its_aggregation(opened):
    with WindowAggregation(SCHEMA, query(), "sim:small") as doing:
        assert len(opened) == 1
        assert doing.last_rows().num_rows == 0
        assert doing.device_work.cycles == 0
    assert opened == []
    doing.close()


def test_a_query_that_does_not_suit_leaves_no_device_open(opened):
    with pytest.raises(AcceleratorLimitError, match="'weight' has floats"):
        WindowAggregation(SCHEMA, query(aggregates={"w": "sum:weight"}), "sim:small")
    assert opened == []


def test_the_host_needs_no_device(opened):
    with WindowAggregation(SCHEMA, query()) as doing:
        assert (doing.device_work, opened) == (Work(), [])


def test_what_a_manifest_cannot_do_is_known_before_a_device_is_opened():
    manifest = manifest_of(PARAMETERS)
    WindowAggregation(SCHEMA, query()).lanes(manifest)
    with pytest.raises(AcceleratorLimitError, match="have 7 panes, but those .* at most 6"):
        WindowAggregation(SCHEMA, query(window=7, advance=1)).lanes(manifest)
    with pytest.raises(AcceleratorLimitError, match="'weight' has floats"):
        WindowAggregation(SCHEMA, query(aggregates={"w": "max:weight"})).lanes(manifest)
