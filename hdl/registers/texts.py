# SPDX-License-Identifier: Apache-2.0
"""All texts that are made of a table of registers."""

from .c_header import c_header
from .markdown import markdown
from .system_rdl import system_rdl

__all__ = ["register_texts"]


def register_texts(table, *, title, digest):
    """Return suffix and text of each file about the registers of a shell, by what it is.

    Parameters
    ----------
    table : hdl.registers.table.RegisterTable
        The registers.
    title : str
        First line of each text.
    digest : str
        Hash of the manifest, which the C header has as a constant.
    """
    return {
        "c_header": (".h", c_header(table, title=title, texts={"MANIFEST_HASH": digest})),
        "system_rdl": (".rdl", system_rdl(table, title=title)),
        "markdown": (".md", markdown(table, title=title)),
    }
