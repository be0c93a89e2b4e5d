# SPDX-License-Identifier: Apache-2.0
"""Shells without memory ports refuse an accelerator whose windows are in external memory."""

__all__ = ["refuse_external_windows"]


def refuse_external_windows(parameters, shell):
    """Raise :exc:`ValueError` if an accelerator needs memory ports, which this shell does not have.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    shell : str
        What the message calls the shell.
    """
    if parameters.is_external:
        raise ValueError(
            f"{shell} has no ports for the external memory of store 'external'; set store='chip',"
            " or connect the ports 'm_axi_*' of the accelerator itself"
        )
