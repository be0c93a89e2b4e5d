# SPDX-License-Identifier: Apache-2.0
"""What a Spark task does with the rows of its partition: read, join on a device, hand back."""
