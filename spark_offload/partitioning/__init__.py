# SPDX-License-Identifier: Apache-2.0
"""Which rows go into which partition, as expressions of Spark: columns, ranges of time, and halos.

A pair is the answer of one partition only, the one that owns its later row; rows of before that it
can meet are sent along as a halo. What a task does with its rows is not known here.
"""
