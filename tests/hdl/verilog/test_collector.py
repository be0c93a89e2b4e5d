# SPDX-License-Identifier: Apache-2.0
from contextlib import suppress
import gc

from hdl.verilog.conversion import without_collector


def test_the_collector_is_off_inside_and_as_it_was_outside():
    assert gc.isenabled()
    with suppress(ZeroDivisionError), without_collector():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
