# SPDX-License-Identifier: Apache-2.0
"""Options of the AXI shell, which change its pins but not the accelerator."""

from dataclasses import asdict, dataclass

from .merged_inputs import check_inputs

__all__ = ["AxiOptions"]


@dataclass(frozen=True, kw_only=True)
class AxiOptions:
    """What an AXI shell looks like from outside.

    Parameters
    ----------
    inputs : int
        1: one input ``s_axis`` for all words. 2: ``s_axis_r`` and ``s_axis_s`` for R and S, which
        are merged by timestamp.
    """

    inputs: int = 1

    def check(self, parameters):
        """Raise :exc:`ValueError` unless the options suit an accelerator."""
        check_inputs(parameters, self.inputs)

    def to_dict(self):
        """Return the options as they are in a manifest."""
        return asdict(self)

    @classmethod
    def from_manifest(cls, described):
        """Return the options of a shell that a manifest describes; of an older kit the defaults."""
        return cls(**described.get("options", {}))
