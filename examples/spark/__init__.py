# SPDX-License-Identifier: Apache-2.0
"""Questions of data engineers, each in a file that can be run."""
