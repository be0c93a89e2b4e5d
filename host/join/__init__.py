# SPDX-License-Identifier: Apache-2.0
"""A join of two inputs on a device: its graph of execution streams, its run, its check."""
