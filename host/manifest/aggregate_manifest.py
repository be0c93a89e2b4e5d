# SPDX-License-Identifier: Apache-2.0
"""The manifest of an accelerator of windowed aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from host.errors import ForeignManifestError
from host.installation import command
from host.manifest.bundle_manifest import BundleManifest, shared_parts

__all__ = ["AGGREGATE_FORMAT", "AggregateManifest"]

#: Format number of the manifests of aggregates that this version reads.
AGGREGATE_FORMAT = 6


@dataclass(frozen=True, eq=False, kw_only=True)
class AggregateManifest(BundleManifest):
    """Description of one accelerator of windowed aggregates; read it with :meth:`load`.

    In the input word, a field of a tuple is ``tuple.NAME``. In the result word, a value of a window
    is ``window.NAME``, with the name of its reduction.

    Attributes
    ----------
    operator : mapping
        Document of the operator, as :mod:`host.windowed` reads it.
    keys, panes : int
        Capacity of keys; largest number of panes in a window.
    slides_by : mapping of str to str
        For each reduction, ``"delta"`` or ``"panes"``: how its windows move on.
    """

    operator: Mapping[str, Any]
    keys: int
    panes: int
    slides_by: Mapping[str, str]

    @classmethod
    def from_dict(cls, values: Any, *, path: Path | None = None, name: str = "manifest") -> Self:
        """Read a manifest from its JSON document.

        Raises
        ------
        ForeignManifestError
            If the document is not a manifest of aggregates, or has another format.
        """
        if not isinstance(values, dict) or values.get("format") != AGGREGATE_FORMAT:
            raise ForeignManifestError(
                name,
                f"has a manifest that is none of aggregates of format {AGGREGATE_FORMAT}; generate "
                f"it by `{command('hdl generate --operator MODULE:NAME')}`",
            )
        try:
            return cls(
                **shared_parts(values),
                operator=values["parameters"]["operator"],
                keys=values["aggregate"]["keys"],
                panes=values["aggregate"]["panes"],
                slides_by=values["aggregate"]["slides_by"],
                path=path,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ForeignManifestError(
                name, f"has an incomplete manifest ({error!r}); generate it again"
            ) from error
