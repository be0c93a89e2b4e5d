# SPDX-License-Identifier: Apache-2.0
"""The family that an accelerator belongs to."""

from hdl.aggregate.aggregate_parameters import AggregateParameters

from .aggregates import AggregateFamily
from .joins import JoinFamily

__all__ = ["family_of"]


def family_of(parameters):
    """Return the :class:`~hdl.families.family.Family` of the accelerator with ``parameters``.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
    """
    if isinstance(parameters, AggregateParameters):
        return AggregateFamily(parameters)
    return JoinFamily(parameters)
