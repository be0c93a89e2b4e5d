# SPDX-License-Identifier: Apache-2.0
"""The accelerator as a stream, and the execution of a join on it."""
