# SPDX-License-Identifier: Apache-2.0
"""The commands of the host beside DuckDB and Polars, on the same files and in one process."""
