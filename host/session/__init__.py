# SPDX-License-Identifier: Apache-2.0
"""One conversation with a device: offer tuples, decode results, order them, recover, steer.

A join on a device runs here, as a graph of streams. What words and manifests mean is in
:mod:`host.protocol`, what a device is in :mod:`host.devices`; operations that are built on a join
are in :mod:`host.operators`.
"""
