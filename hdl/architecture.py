# SPDX-License-Identifier: Apache-2.0
"""Which accelerator parameters describe: SplitJoin, a join it is compared with, or aggregates."""

from .accelerator import Accelerator
from .aggregate.accelerator import AggregateAccelerator
from .aggregate.aggregate_parameters import AggregateParameters
from .baselines.accelerator import ChainAccelerator
from .join_aggregate import JoinAggregateAccelerator

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
    if parameters.is_aggregated:
        return JoinAggregateAccelerator(parameters)
    return (ChainAccelerator if parameters.is_chain else Accelerator)(parameters)
