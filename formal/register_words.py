# SPDX-License-Identifier: Apache-2.0
"""States of a stream register with early fields, for inductions about what it is a part of."""

from types import SimpleNamespace

from amaranth import *

__all__ = ["register_words"]


def register_words(bench, register, like):
    """Claim the states of a stream register by itself; return its words, the older one first.

    Parameters
    ----------
    register : StreamRegister
        With the early fields ``kind`` and ``time``.
    like : view
        What has the shape of a word.

    Returns
    -------
    list of namespace
        Of both places: whether a word is ``there``, and this ``word``.
    """
    payloads, write, read, ready, valid, output, spare = (
        bench.inside(register, name)
        for name in ("payloads", "write", "read", "ready", "valid", "output", "spare")
    )
    bench.invariant(ready | valid)
    bench.invariant((write ^ read) == (ready & valid))
    words = [bench.view(like, Mux(read ^ n, payloads[1], payloads[0])) for n in range(2)]
    for there, one, early in zip((valid, ~ready), words, (output, spare), strict=True):
        bench.invariant(~there | (early == Cat(one.kind, one.time)))
    return [
        SimpleNamespace(there=there, word=one)
        for there, one in zip((valid, ~ready), words, strict=True)
    ]
