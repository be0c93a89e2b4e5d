# SPDX-License-Identifier: Apache-2.0
"""Which faults there can be: one change in the source of one component each."""

from importlib import import_module
import inspect
from pathlib import Path
import pkgutil
import random

from amaranth.lib import wiring

from bench import handshake
from formal.mutation import mutants_of
import hdl

__all__ = ["component_named", "drawn", "fault", "stages"]

ROOT = Path(__file__).parents[2]
#: Packages that describe no hardware of an accelerator.
OTHERS = ("hdl.fpga", "hdl.verilog")
#: What notices a fault that the component's own test lets pass, the quickest first.
WIDER = ("tests/hdl/test_accelerator.py", "tests/hdl", "tests/sim/verilated/test_words.py")


def components():
    """Return the classes of all components of an accelerator, by module and name."""
    found = {}
    for package in (hdl, handshake):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.startswith(OTHERS):
                continue
            for name, member in vars(import_module(module.name)).items():
                if inspect.isclass(member) and issubclass(member, wiring.Component):
                    found[member.__module__, name] = member
    return [found[key] for key in sorted(found) if key[0].startswith(("hdl.", "bench."))]


def component_named(module, name):
    """Return the class of a component."""
    return getattr(import_module(module), name)


def fault(component, number):
    """Return one of the mutants of a component."""
    return mutants_of(component)[number]


def drawn(seed, count):
    """Return ``count`` faults: a component each, drawn first, and the number of its mutant."""
    generator = random.Random(seed)
    every, faults = components(), []
    while len(faults) < count:
        component = generator.choice(every)
        if mutants := mutants_of(component):
            faults.append((component, generator.randrange(len(mutants))))
    return faults


def stages(component):
    """Return the tests to run, one group after the other, until a fault is found."""
    name = f"test_{component.__module__.rpartition('.')[2]}.py"
    folders = (ROOT / "tests" / part for part in ("hdl", "bench/handshake"))
    own = sorted(str(path.relative_to(ROOT)) for part in folders for path in part.rglob(name))
    return [*own, *WIDER]
