# SPDX-License-Identifier: Apache-2.0
"""Reset that reaches the registers of a component through registers of its own."""

from amaranth import *
from amaranth.hdl import Fragment

__all__ = ["STAGES", "local_reset", "reset_nearby"]

#: Clock cycles that reset takes on its way: two across the chip, one to spread from.
STAGES = 3


def local_reset(m, *, of="sync"):
    """Give ``m`` a clock domain ``local``; return what puts a submodule of ``m`` into it.

    One reset net to all registers of a chip would be its slowest. So components that are far from
    others, or have many registers, have registers of their own for it: ``local`` is ``sync`` with a
    reset that comes, and goes, :data:`STAGES` cycles later. Nothing else may arrive before: so
    reset lasts a few cycles, and the ingress takes no word while its own is in reset.

    Parameters
    ----------
    m : Module
        Has no such domain yet.
    of : str
        The domain that it is like.

    Returns
    -------
    DomainRenamer
        From ``sync`` to ``local``.
    """
    m.domains.local = local = ClockDomain(local=True)
    stages = Signal(STAGES, reset_less=True, name="reset_stages")
    m.d[of] += stages.eq(Cat(ResetSignal(of), stages))
    m.d.comb += [local.clk.eq(ClockSignal(of)), local.rst.eq(stages[-1])]
    return DomainRenamer("local")


def reset_nearby(m, platform, *, pipelined):
    """Return the module ``m`` with its ``sync`` as :func:`local_reset` has it, if ``pipelined``.

    It is what the ``elaborate`` of a component returns, given the ``platform`` of that.
    """
    if not pipelined:
        return m
    local_reset(m, of="outside")
    return DomainRenamer({"sync": "local", "outside": "sync"})(Fragment.get(m, platform))
