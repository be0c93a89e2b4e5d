# SPDX-License-Identifier: Apache-2.0
"""Hierarchy of a Verilog text: how often it has each module, and which one a net belongs to."""

from collections import Counter
import re

__all__ = ["Hierarchy", "class_of"]

MODULE = re.compile(r"^module (\w+)\(.*?^endmodule", re.MULTILINE | re.DOTALL)
#: Instance of a component; instances of vendor primitives have parameters and look different.
INSTANCE = re.compile(r"^  (\w+) (\w+) \($", re.MULTILINE)


def class_of(module):
    """Return the component class of a module: its name without the number."""
    return re.sub(r"_\d+$", "", module)


class Hierarchy:
    """Modules and instances of a Verilog text from :func:`hdl.verilog.conversion.to_verilog`.

    Parameters
    ----------
    verilog : str
        Verilog text.
    top : str
        Name of its top module.
    """

    def __init__(self, verilog, *, top):
        self.top = top
        bodies = {match[1]: match[0] for match in MODULE.finditer(verilog)}
        #: Module name to its instances, which map name to module. Vendor primitives are left out.
        self.instances = {
            module: {name: child for child, name in INSTANCE.findall(body) if child in bodies}
            for module, body in bodies.items()
        }

    def counts(self):
        """Return the number of instances of each module in the whole design."""
        totals = Counter()

        def visit(module, times):
            totals[module] += times
            for child, number in Counter(self.instances[module].values()).items():
                visit(child, times * number)

        visit(self.top, 1)
        return totals

    def locate(self, name):
        """Return instance path and module of the component to which a flattened ``name`` belongs.

        The path starts below the top module; it is empty for names of the top module itself.
        """
        module, path = self.top, []
        for part in name.split("."):
            if part not in self.instances[module]:
                break
            module = self.instances[module][part]
            path.append(part)
        return ".".join(path), module
