# SPDX-License-Identifier: Apache-2.0
"""Which accelerator parameters describe: SplitJoin, a join that it is compared with, aggregates."""

from .accelerator import Accelerator
from .aggregate.accelerator import AggregateAccelerator
from .aggregate.aggregate_parameters import AggregateParameters
from .baselines.accelerator import ChainAccelerator

__all__ = ["make_accelerator"]


def make_accelerator(parameters):
    """Return the accelerator with ``parameters``. All have ports of the same names.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Of the accelerator.
    """
    if isinstance(parameters, AggregateParameters):
        return AggregateAccelerator(parameters)
    return (ChainAccelerator if parameters.is_chain else Accelerator)(parameters)
