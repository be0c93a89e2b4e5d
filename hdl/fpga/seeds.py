# SPDX-License-Identifier: Apache-2.0
"""Seeds of a route: the slowest one is reported, and later seeds can be added to earlier ones."""

__all__ = ["OF_SLOWEST", "merge_reports", "outcome", "require_same"]

#: Fields of a report that describe its slowest seed only.
OF_SLOWEST = (
    "fmax_mhz", "utilization", "critical_path", "slow_registers", "seed", "program", "nextpnr",
)  # fmt: skip

#: Fields of a report that describe every seed.
OF_EACH = ("seed", "program", "fmax_mhz", "seconds")


def outcome(runs, router):
    """Return the fields of a report on seeds that ran with the program ``router``."""
    worst = min(runs, key=lambda run: run["fmax_mhz"])
    return {
        **{name: worst[name] for name in OF_SLOWEST},
        "routers": [router.to_dict()],
        "runs": [{name: run[name] for name in OF_EACH} for run in runs],
    }


def require_same(earlier, routed):
    """Raise ValueError unless an earlier report has the same values, and so the same design.

    Parameters are not among the values: the Verilog stands for them, and new ones may be added.
    """
    for name, value in routed.items():
        if earlier.get(name) != value:
            raise ValueError(
                f"The existing report has another {name}: route without --add, or route all seeds"
            )


def merge_reports(earlier, later):
    """Return the report on the seeds of two reports of the same design; the slowest seed counts.

    ``earlier`` was read from a file. If the same program routed a seed twice, the later result is
    reported. Results of another build of the same release stand beside it.
    """
    runs = {
        (run["seed"], run["program"]): run
        for report in (earlier, later)
        for run in report["runs"]
    }  # fmt: skip
    routers = {each["name"]: each for report in (earlier, later) for each in report["routers"]}
    slowest = min(runs.values(), key=lambda run: run["fmax_mhz"])
    of_slowest = later if slowest in later["runs"] else earlier
    return {
        **later,
        **{name: of_slowest[name] for name in OF_SLOWEST},
        "routers": list(routers.values()),
        "runs": [runs[key] for key in sorted(runs)],
        "measured": later["measured"] or earlier["measured"],
        "command": f"{earlier['command']}; {later['command']}",
    }
