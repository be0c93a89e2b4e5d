# SPDX-License-Identifier: Apache-2.0
"""Errors on their way from Java and from tasks to the user."""
