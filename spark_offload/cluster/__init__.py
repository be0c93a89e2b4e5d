# SPDX-License-Identifier: Apache-2.0
"""The machines behind a session, and what they get: packages, bundles and devices.

Everything that differs between a session with a Java process of its own and one of Spark Connect is
here. What a query is, or a row, is not known here.
"""
