# SPDX-License-Identifier: Apache-2.0
"""The commands of `python -m host`, and what they share.

Each command is a file with its parser and its work; `startup` is loaded before everything else.
What commands do is in the folders below: nothing here is needed by a program.
"""
