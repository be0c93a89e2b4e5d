# SPDX-License-Identifier: Apache-2.0
from amaranth.hdl import _nir
import pytest

from tests.amaranth_speed.nets import check_nets_quickly


def test_lists_of_nets_are_those_of_amaranth(monkeypatch):
    nets = [_nir.Net.from_const(1), _nir.Net.from_cell(3, 2), _nir.Net.from_const(0)]
    check_nets_quickly(monkeypatch)
    value = _nir.Value(net for net in nets)
    assert type(value) is _nir.Value
    assert list(value) == nets
    assert type(value[1:]) is _nir.Value
    assert list(value[1:]) == nets[1:]
    assert list(_nir.Value(nets[0])) == nets[:1]
    assert len(_nir.Value()) == 0


def test_what_is_no_net_is_refused(monkeypatch):
    with pytest.raises(Exception) as own:
        _nir.Value([_nir.Net.from_const(1), "1"])
    check_nets_quickly(monkeypatch)
    with pytest.raises(own.type):
        _nir.Value([_nir.Net.from_const(1), "1"])
