# SPDX-License-Identifier: Apache-2.0
"""What a manifest says: words, configuration, storage and ordering rules, and the cost model.

Everything here follows from a manifest and a query, without a device. Talking to a device is the
matter of :mod:`host.session`, and what a device is that of :mod:`host.devices`.
"""
