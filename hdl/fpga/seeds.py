# SPDX-License-Identifier: Apache-2.0
"""The seeds of a route: the slowest of them counts, and later ones are added to earlier ones."""

__all__ = ["OF_SLOWEST", "merge_reports", "outcome", "require_same"]

#: What a report says of the slowest of its seeds alone.
OF_SLOWEST = (
    "fmax_mhz", "utilization", "critical_path", "slow_registers", "seed", "program", "nextpnr",
)  # fmt: skip

#: What a report says of every seed.
OF_EACH = ("seed", "program", "fmax_mhz", "seconds")


def outcome(runs, router):
    """Return what a report says of seeds that ran with the program ``router``."""
    worst = min(runs, key=lambda run: run["fmax_mhz"])
    return {
        **{name: worst[name] for name in OF_SLOWEST},
        "routers": [router.to_dict()],
        "runs": [{name: run[name] for name in OF_EACH} for run in runs],
    }


def require_same(earlier, routed):
    """Raise ValueError unless an earlier report has the same values, and so is of the same thing.

    Parameters are not among them: the Verilog tells what they mean, and new ones may be added.
    """
    for name, value in routed.items():
        if earlier.get(name) != value:
            raise ValueError(
                f"The report that is there is of another {name}: route without --add, or all seeds"
            )


def merge_reports(earlier, later):
    """Return the report of the seeds of both, which are of the same design; the slowest counts.

    ``earlier`` comes from a file. A seed that the same program routed twice is reported as it was
    the last time; seeds of another build of the same release stand beside it.
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
