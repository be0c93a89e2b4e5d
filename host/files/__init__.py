# SPDX-License-Identifier: Apache-2.0
"""Tables in files, and writing that is atomic."""
