# SPDX-License-Identifier: Apache-2.0
"""Run tests on hardware with a fault: ``python -m tests.faults.run MODULE CLASS NUMBER TEST``."""

import sys

import pytest

from .catalogue import component_named, fault

__all__ = []

#: Tests that compare nothing but the text of a design would notice any change.
OPTIONS = [
    "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--ignore=tests/hdl/fpga",
    "--hypothesis-profile=faults",
]  # fmt: skip


class FirstFailure:
    """Tells which test failed first."""

    def __init__(self):
        self.test = None

    def pytest_runtest_logreport(self, report):
        """Keep the name of the first test that fails."""
        if report.failed and self.test is None:
            self.test = report.nodeid

    def pytest_collectreport(self, report):
        """A module that cannot even be imported has noticed, too."""
        if report.failed and self.test is None:
            self.test = report.nodeid


def main(module, name, number, tests):
    """Run the tests; print, as the last line, the one that failed, if any."""
    first = FirstFailure()
    with fault(component_named(module, name), int(number)).applied():
        pytest.main([*OPTIONS, tests], plugins=[first])
    print(f"\nfound by: {first.test or 'none'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
