# SPDX-License-Identifier: Apache-2.0
"""The execution streams of a join, from tables to result batches."""
