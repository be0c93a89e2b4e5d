# SPDX-License-Identifier: Apache-2.0
"""Which accelerator parameters describe: SplitJoin, or a join that it is compared with."""

from .accelerator import Accelerator
from .baselines.accelerator import ChainAccelerator

__all__ = ["make_accelerator"]


def make_accelerator(parameters):
    """Return the accelerator with ``parameters``; all of them have the same ports.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    """
    return (ChainAccelerator if parameters.is_chain else Accelerator)(parameters)
