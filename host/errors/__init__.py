# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the kit, whose messages a command can print as they are.

Each message is one or two sentences that name the rule, the value, the place and the remedy. There
are two branches: :class:`UsageError` (the request or its data must change; exit code 2) and
:class:`FailureError` (the request was well formed, but the run failed; exit code 1). All exceptions
can be pickled, because Spark carries them from executors to the driver.
"""

from host.errors.base import (
    FailureError,
    JoinError,
    UsageError,
)
from host.errors.bundles import (
    BuildError,
    CacheError,
    ForeignLibraryError,
    ForeignManifestError,
    ManifestError,
    MissingManifestError,
    MissingToolError,
    StaleManifestError,
)
from host.errors.capacity import (
    AcceleratorLimitError,
    CapacityError,
    WindowOverflowError,
)
from host.errors.columns import (
    KeyRangeError,
    PredicateError,
    UnknownColumnError,
    UnsupportedTypeError,
    UntypedColumnError,
)
from host.errors.devices import (
    CoreFailureError,
    DeviceBusyError,
    DeviceError,
    DeviceLockError,
    DeviceTimeoutError,
    DeviceUriError,
    IllegalWordError,
    MemoryFaultError,
)
from host.errors.epochs import (
    EpochCapacityError,
    EpochCoresError,
    EpochError,
    EpochOrderError,
)
from host.errors.links import (
    LinkError,
    LinkLostError,
    LinkMismatchError,
    LinkSilentError,
)
from host.errors.operators import (
    AggregateOverflowError,
    ExpressionError,
    OperatorError,
)
from host.errors.order import (
    DisorderError,
    DuplicateKeyError,
    FalseDistinctError,
    FalseOrderError,
    NullOrderError,
)

__all__ = [
    "AcceleratorLimitError",
    "AggregateOverflowError",
    "BuildError",
    "CacheError",
    "CapacityError",
    "CoreFailureError",
    "DeviceBusyError",
    "DeviceError",
    "DeviceLockError",
    "DeviceTimeoutError",
    "DeviceUriError",
    "DisorderError",
    "DuplicateKeyError",
    "EpochCapacityError",
    "EpochCoresError",
    "EpochError",
    "EpochOrderError",
    "ExpressionError",
    "FailureError",
    "FalseDistinctError",
    "FalseOrderError",
    "ForeignLibraryError",
    "ForeignManifestError",
    "IllegalWordError",
    "MemoryFaultError",
    "JoinError",
    "KeyRangeError",
    "LinkError",
    "LinkLostError",
    "LinkMismatchError",
    "LinkSilentError",
    "ManifestError",
    "MissingManifestError",
    "MissingToolError",
    "NullOrderError",
    "OperatorError",
    "PredicateError",
    "StaleManifestError",
    "UnknownColumnError",
    "UnsupportedTypeError",
    "UntypedColumnError",
    "UsageError",
    "WindowOverflowError",
]
