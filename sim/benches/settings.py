# SPDX-License-Identifier: Apache-2.0
"""What the pytest side of a bench tells its simulator side."""

import json
import os

__all__ = ["SETTINGS"]

#: Settings from the module that runs the bench; without them, there is nothing to run.
SETTINGS = json.loads(os.environ.get("SPLITJOIN_BENCH", "null"))
