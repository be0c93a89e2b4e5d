# SPDX-License-Identifier: Apache-2.0
"""ScaleGate: several timestamp-sorted sources become one sorted stream of ready tuples."""
