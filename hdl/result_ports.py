# SPDX-License-Identifier: Apache-2.0
"""The ports that results leave by: one, or one for the probes of each side."""

__all__ = ["result_ports", "results_per_cycle"]


def result_ports(parameters):
    """Return the names of an accelerator's result ports.

    A single port, ``o``, has the results of both sides. Of two ports, ``o_r`` has the results of
    R's probes and ``o_s`` those of S's probes. A mark leaves by all ports.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    """
    return ("o",) if parameters.result_streams == 1 else ("o_r", "o_s")


def results_per_cycle(parameters):
    """Return the largest number of results that leave in a cycle, by all ports together."""
    return parameters.tuples_per_word * parameters.result_streams
