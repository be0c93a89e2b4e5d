# SPDX-License-Identifier: Apache-2.0
"""What a join does when a core of its accelerator fails."""

from enum import Enum

from host.errors import UsageError

__all__ = ["OnFailure"]


class OnFailure(Enum):
    """Policy for a core that fails while a join runs; its value is its name for users."""

    #: The join ends with a :class:`~host.errors.CoreFailureError`.
    RAISE = "raise"
    #: The join goes on without the core. The result lacks the pairs with tuples that the core
    #: stored, and the :class:`~host.failures.failure_record.FailureRecord` says which tuples these
    #: are.
    REPORT = "report"
    #: The join sends the tuples of the window again to the other cores, and its result is complete.
    REPLAY = "replay"

    @classmethod
    def of(cls, value: "OnFailure | str") -> "OnFailure":
        """Return the policy of this name.

        Raises
        ------
        UsageError
            If there is no such policy.
        """
        try:
            return cls(value)
        except ValueError:
            names = ", ".join(repr(policy.value) for policy in cls)
            raise UsageError(f"Policy on_failure must be one of {names}, not {value!r}.") from None
