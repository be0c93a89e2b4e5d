# SPDX-License-Identifier: Apache-2.0
"""The accelerator that parameters describe, and the family that it belongs to."""

from hdl.aggregate.accelerator import AggregateAccelerator
from hdl.aggregate.aggregate_parameters import AggregateParameters

from .aggregates import AggregateFamily
from .joins import JoinFamily

__all__ = ["family_of", "make_accelerator"]


def family_of(parameters):
    """Return the :class:`~hdl.families.family.Family` of the accelerator with ``parameters``.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
    """
    if isinstance(parameters, AggregateParameters):
        return AggregateFamily(parameters)
    return JoinFamily(parameters)


def make_accelerator(parameters):
    """Return the accelerator with ``parameters``. All have ports of the same names.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Of the accelerator.
    """
    if isinstance(parameters, AggregateParameters):
        return AggregateAccelerator(parameters)
    return parameters.arrangement.accelerator(parameters)
