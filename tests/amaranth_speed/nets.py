# SPDX-License-Identifier: Apache-2.0
"""Lists of nets that are checked in one step.

Amaranth's netlists consist of lists of nets. It checks every net of a list whenever it makes one of
another, slices included, which is a tenth of the processor's time of a test that generates Verilog.
"""

from amaranth.hdl import _nir

__all__ = ["check_nets_quickly"]

NETS = {_nir.Net}


def check_nets_quickly(monkeypatch):
    """Let lists of nets compare the types of all nets at once; Amaranth looks at any other list.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Undoes it.
    """
    make = _nir.Value.__new__

    def make_quickly(cls, nets=()):
        if not isinstance(nets, _nir.Net):
            nets = tuple(nets)
            if set(map(type, nets)) <= NETS:
                return tuple.__new__(cls, nets)
        return make(cls, nets)

    monkeypatch.setattr(_nir.Value, "__new__", make_quickly)
