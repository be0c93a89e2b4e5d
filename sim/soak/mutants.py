# SPDX-License-Identifier: Apache-2.0
"""Bundles with one fault in their Verilog, to see whether the soak finds it."""

import json
import re

from hdl.manifest import fingerprint

__all__ = ["changed", "write_mutant"]


def changed(verilog, module, old, new):
    """Return Verilog in which the first ``old`` of an assignment in a module is ``new``.

    Parameters
    ----------
    verilog : str
    module : str
        Its name.
    old, new : str
        Operators, as ``"&"``.

    Raises
    ------
    ValueError
        If the module has no such assignment.
    """
    begin = verilog.index(f"module {module}(")
    end = verilog.index("endmodule", begin)
    found = re.search(rf"^(  assign .* ){re.escape(old)} ", verilog[begin:end], flags=re.MULTILINE)
    if not found:
        raise ValueError(f"Module {module!r} has no assignment with operator {old!r}")
    at = begin + found.end(1)
    return f"{verilog[:at]}{new}{verilog[at + len(old) :]}"


def write_mutant(bundle, folder, module, old, new):
    """Write a copy of a bundle with one operator changed, as :func:`changed` does it.

    It has no netlist, so its library is made from the Verilog.
    """
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    source = manifest["files"]["verilog"]
    verilog = changed((bundle / source).read_text(encoding="utf-8"), module, old, new)
    manifest["files"] = {"verilog": source}
    manifest["checksums"] = {}
    manifest["hash"] = fingerprint(manifest, verilog)
    folder.mkdir(parents=True)
    (folder / source).write_text(verilog, encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
