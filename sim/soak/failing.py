# SPDX-License-Identifier: Apache-2.0
"""Random faults of cores, for accelerators whose cores can fail."""

from sim.failures.injection import VARIABLE, CoreFault, code_of

from .machine import Fault

__all__ = ["random_fault"]

FAULTS = list(CoreFault)


def random_fault(random, cores, cycles):
    """Return a core that fails in some way, at the latest after so many cycles, early as often."""
    core = int(random.integers(cores))
    kind = FAULTS[int(random.integers(len(FAULTS)))]
    cycle = int(cycles ** random.random())
    return Fault(core, f"{kind.name} from cycle {cycle}", VARIABLE, code_of(core, kind, cycle))
