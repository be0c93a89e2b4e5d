# SPDX-License-Identifier: Apache-2.0
"""What was decided of the devices of a pool for one micro-batch, as a value and as a text."""

from dataclasses import asdict, dataclass
import json

from host.query.cores import Observation

__all__ = ["PoolDecision"]


@dataclass(frozen=True)
class PoolDecision:
    """How many devices of a pool a streaming join uses in one micro-batch, on one machine.

    Parameters
    ----------
    machine : str
        Name of the machine, whose pool it is.
    batch : int
        Number of the micro-batch.
    devices : int
        Devices of the pool.
    active : int
        Number of them that are in use in this micro-batch.
    seen : Observation or None
        What was observed of the micro-batches before it, and led to the number; None if no
        observation ended here, so that the number stayed.
    """

    machine: str
    batch: int
    devices: int
    active: int
    seen: Observation | None

    @property
    def text(self) -> str:
        """The decision as a JSON document, which :meth:`parse` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> "PoolDecision":
        """Return the decision of a text."""
        values = json.loads(text)
        seen = values.pop("seen")
        return cls(**values, seen=None if seen is None else Observation(**seen))
