# SPDX-License-Identifier: Apache-2.0
"""What a session on a local cluster of two workers needs so that each worker finds one device."""

__all__ = ["discovery_options"]

SCRIPT = """#!/bin/sh
# Both workers are on this machine, and ask once each.
if mkdir "{folder}/asked" 2>/dev/null
then echo '{{"name": "card", "addresses": ["{first}"]}}'
else echo '{{"name": "card", "addresses": ["{second}"]}}'
fi
"""


def discovery_options(folder, first, second, *, amount):
    """Write a script of discovery into ``folder``, and return options of the session that use it.

    Parameters
    ----------
    folder : pathlib.Path
        Where the script is written.
    first, second : str
        Addresses of the devices, one for each worker, of a resource called ``card``.
    amount : str
        Share of a device that a task gets.

    Returns
    -------
    dict of str to str
    """
    script = folder / "discover.sh"
    script.write_text(SCRIPT.format(folder=folder, first=first, second=second))
    script.chmod(0o755)
    return {
        "spark.worker.resource.card.amount": "1",
        "spark.worker.resource.card.discoveryScript": str(script),
        "spark.executor.resource.card.amount": "1",
        "spark.task.resource.card.amount": amount,
    }
