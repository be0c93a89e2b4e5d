# SPDX-License-Identifier: Apache-2.0
"""A fingerprint of what a Python module does, which comments and docstrings do not change."""

import ast
import hashlib

__all__ = ["code_digest"]

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_digest(source):
    """Return the SHA-256 of a module's code, without comments, docstrings and layout.

    Parameters
    ----------
    source : str
        The text of the module.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            # A body must not be empty, so that something has to stand where the docstring stood.
            node.body[0] = ast.Pass()
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()
