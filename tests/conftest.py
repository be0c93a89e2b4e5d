# SPDX-License-Identifier: Apache-2.0
"""What all tests share: where the repository is, steady random data, a quick Java."""

import faulthandler
import gc
import os
from pathlib import Path
import sys

from hypothesis import HealthCheck, Phase, settings
import pytest

from tests.fewer import leave_few, take_fewer_examples
from tests.generated import compiled_headers, kept_in
from tests.skips import SkipRecord
from tests.spread import SPARK, SparkOnTwoWorkers

ROOT = Path(__file__).resolve().parent.parent

#: Folders whose tests compile accelerators; each of them takes tens of seconds.
COMPILING = (
    "tests/bench/", "tests/examples/", "tests/sim/", "tests/soak/", "tests/host/devices/",
)  # fmt: skip
#: Seconds that the process of a test lives on after the test's own timeout.
GRACE = 120
#: Where the stacks of a process go that is ended: the standard error of the run, not of a test.
STDERR = pytest.StashKey[int]()

# No deadline: two workers on two cores make times uneven. In CI, the same examples every time.
settings.register_profile(
    "local", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
# Of a fault (`python -m tests.faults`) one asks only whether it is noticed, for no small example,
# and of a mutant (`make mutation`) with fewer examples.
settings.register_profile(
    "faults",
    settings.get_profile("ci"),
    phases=[Phase.explicit, Phase.generate],
    database=None,
)
settings.register_profile("mutation", settings.get_profile("faults"), max_examples=40)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# No Java process of the tests lives long enough to earn back what its optimizing compiler and its
# parallel collector cost: two fifths of the processor's time of the tests of Spark.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# To verify the classes of Spark takes an eighth of what Java needs up to the first join.
UNVERIFIED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{JAVA} {UNVERIFIED}")


def pytest_addoption(parser):
    parser.addoption(
        "--fail-on-unlisted-skip", action="store_true",
        help="fail if a test is skipped that tests/skips.py does not list (make check)",
    )  # fmt: skip


def pytest_configure(config):
    config.stash[STDERR] = os.dup(sys.__stderr__.fileno())
    # With several workers, the process that starts them receives all reports.
    if config.getoption("--fail-on-unlisted-skip") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipRecord(), "skip-record")


def pytest_unconfigure(config):
    os.close(config.stash[STDERR])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let a test whose mark ``timeout`` allows it live longer than ``faulthandler_timeout``."""
    marked = item.get_closest_marker("timeout")
    seconds = marked.args[0] + GRACE if marked else 0
    if seconds > float(item.config.getini("faulthandler_timeout")):
        faulthandler.dump_traceback_later(seconds, exit=True, file=item.config.stash[STDERR])


@pytest.hookimpl(tryfirst=True)  # before those with the mark ``long`` are left out
def pytest_collection_modifyitems(config, items):
    # Workers are given files in this order. Two of them are long busy with Spark, those beside this
    # file start long programs, and those of the simulator compile accelerators: as the last ones,
    # they would run while the other workers have nothing left to do.
    items.sort(
        key=lambda item: (
            not item.nodeid.startswith(SPARK),
            item.path.parent != ROOT / "tests",
            not item.nodeid.startswith(COMPILING),
        )
    )
    leave_few(items)
    take_fewer_examples(config, items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return SparkOnTwoWorkers(config, log) if config.getvalue("dist") == "loadfile" else None


# Modules and tests stay once they are there. Until then, the collector would look at them again and
# again, which takes it a third of the time of a worker's collection of tests.
gc.disable()


def pytest_collection_finish(session):
    gc.enable()
    # What all the tests are made of stays to the end: the collector need not look at it again,
    # which takes it a tenth of the time of a simulation in Python.
    gc.freeze()


def shared_by_workers(tmp_path_factory):
    """Return the temporary folder of this run, which all its workers share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session", autouse=True)
def generated_once(tmp_path_factory):
    """What one test generates, others need not, whichever worker they run in.

    The value is the function of the package itself.
    """
    import hdl.bundle

    folder = shared_by_workers(tmp_path_factory) / "generated"
    generate = hdl.bundle.generate_once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdl.bundle, "generate_once", kept_in(folder, generate))
        yield generate


@pytest.fixture(scope="session", autouse=True)
def libraries_in_one_piece(tmp_path_factory):
    """The model of a simulator library is compiled as one file, with few optimizations.

    Most of the compiler's time is Verilator's headers, which every file reads again: they are
    compiled once for all workers. The tests simulate too little to earn back what the optimizations
    cost, and need no second processor for it, as there are other tests.
    """
    import sim.verilated.model

    headers = shared_by_workers(tmp_path_factory) / "headers.h"
    unite = sim.verilated.model.unite

    def unite_all(folder, harness, levels):
        units = unite(folder, harness, levels)
        header = compiled_headers(headers, levels[-1])
        for name, _ in units:
            code = (folder / name).read_text(encoding="utf-8")
            (folder / name).write_text(f'#include "{header}"\n{code}', encoding="utf-8")
        return [(name, levels[-1]) for name, _ in units]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sim.verilated.model, "unite", unite_all)
        patch.setattr(sim.verilated.model, "UNIT_BYTES", 1 << 40)
        # Part of a library's name: nobody gets a slow one because the tests have built it.
        patch.setattr(sim.verilated.model, "FAST", sim.verilated.model.SLOW)
        yield


@pytest.fixture(scope="session")
def root():
    """The folder that holds the packages."""
    return ROOT
