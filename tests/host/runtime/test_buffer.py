# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from host.runtime import Buffer, BufferState, Columns, GraphError


def batch(*values):
    return Columns({"value": np.array(values, np.int64)})


def test_a_buffer_goes_through_all_its_states():
    buffer = Buffer(2)
    assert buffer.state is BufferState.EMPTY
    assert not buffer.demand()
    assert buffer.state is BufferState.UNDERFLOW
    assert buffer.provide() == 2
    assert buffer.produce(batch(1, 2))
    assert buffer.state is BufferState.NONEMPTY
    assert not buffer.produce(batch(3))
    assert buffer.state is BufferState.OVERFLOW
    buffer.finish()
    assert buffer.demand()
    buffer.access()
    buffer.consume()
    assert buffer.state is BufferState.EOS
    assert buffer.at_end


def test_a_pending_batch_stays_until_it_is_consumed():
    buffer = Buffer(4)
    buffer.produce(batch(1, 2, 3))
    assert not buffer.consumption_pending
    first = buffer.access()
    assert buffer.consumption_pending
    assert buffer.access() is first
    buffer.consume(2)
    assert not buffer.consumption_pending
    assert buffer.rows == 1
    assert buffer.access()["value"].tolist() == [3]


def test_consuming_makes_room():
    buffer = Buffer(1)
    assert buffer.produce(batch(1))
    assert buffer.provide() == 0
    buffer.access()
    buffer.consume()
    assert buffer.provide() == 1


def test_an_empty_batch_is_dropped():
    buffer = Buffer(1)
    assert buffer.produce(batch())
    assert buffer.state is BufferState.EMPTY


def test_misuse_is_an_error():
    buffer = Buffer(1, "a -> b")
    with pytest.raises(GraphError, match="without an access"):
        buffer.consume()
    with pytest.raises(GraphError, match="'a -> b' is accessed"):
        buffer.access()
    buffer.produce(batch(1))
    buffer.access()
    with pytest.raises(GraphError, match="2 of 1 rows"):
        buffer.consume(2)
    buffer.finish()
    with pytest.raises(GraphError, match="after its end"):
        buffer.produce(batch(2))
    with pytest.raises(GraphError, match="at least one row"):
        Buffer(0)


def test_columns_must_have_one_length():
    with pytest.raises(ValueError, match="one length"):
        Columns({"a": np.zeros(1), "b": np.zeros(2)})
