# SPDX-License-Identifier: Apache-2.0
"""Tables in files: Parquet, CSV and JSON, read as other tools write them and written atomically.

Files that appear whole or not at all, and their checksums, are here for bundles too. What the rows
mean is not known here.
"""
