# SPDX-License-Identifier: Apache-2.0
"""Reset that reaches the registers of a component through registers of its own."""

from amaranth import *

__all__ = ["STAGES", "local_reset"]

#: Clock cycles that reset takes on its way: one across the chip, one to spread from.
STAGES = 2


def local_reset(m):
    """Give ``m`` a clock domain ``local``; return what puts a submodule of ``m`` into it.

    One reset net to all registers of a chip would be its slowest. So components that are far from
    others, or have many registers, have registers of their own for it: ``local`` is ``sync`` with a
    reset that comes, and goes, :data:`STAGES` cycles later. Nothing else may arrive before.

    Parameters
    ----------
    m : Module
        Has no such domain yet.

    Returns
    -------
    DomainRenamer
        From ``sync`` to ``local``.
    """
    m.domains.local = local = ClockDomain(local=True)
    stages = Signal(STAGES, reset_less=True, name="reset_stages")
    m.d.sync += stages.eq(Cat(ResetSignal(), stages))
    m.d.comb += [local.clk.eq(ClockSignal()), local.rst.eq(stages[-1])]
    return DomainRenamer("local")
