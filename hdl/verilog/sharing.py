# SPDX-License-Identifier: Apache-2.0
"""Module sharing: the pass between Amaranth's RTLIL and Yosys that leaves one module per component.

Amaranth writes a separate module for every *instance* of a component. :func:`share_modules` gives
structurally equal modules one body, and turns every name into a plain identifier. It works on the
text from the leaves to the top, so that the parents of equal children become equal themselves.
"""

import re

from .keywords import KEYWORDS

__all__ = ["share_modules", "snake_case"]

MODULE = re.compile(r"^module (\\\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
ATTRIBUTE = re.compile(r"^\s*attribute \\(?!init\b)\S+ .*\n", re.MULTILINE)
#: A wire with its attributes: everything before the name, then the name.
WIRE = re.compile(r"((?:^  attribute \\init .*\n)?)^  wire (.*?)(\S+)\n\n?", re.MULTILINE)
PORT = re.compile(r"(?:input|output|inout) \d+ ")
CELL = re.compile(r"^  cell (\\\S+) \\\S+\n(?:    .*\n)*?  end\n", re.MULTILINE)
#: Strings are matched so that names inside them are left alone, except memory identifiers.
NAME = re.compile(r'"\\\\(?P<memory>[^"]*)"|"(?:[^"\\]|\\.)*"|(?P<name>\\[^\s"]+)')
PARAMETER = re.compile(r"(^ *parameter )(\\\S+)", re.MULTILINE)
#: Initial contents of a memory that are all zeros, or empty; see :func:`drop_blank_memories`.
BLANK = re.compile(r"^  cell \$meminit_v2 \S+\n(?:    .*\n)*?    connect \\DATA (?:\d+'0*|\{ *\})\n"
                   r"(?:    .*\n)*?  end\n", re.MULTILINE)  # fmt: skip


def snake_case(name):
    """Return the CamelCase ``name`` of a class in snake case, as the name of a module."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def plain(name):
    """Return ``name`` as an identifier, without the suffixes by which Amaranth makes it unique."""
    stem = re.sub(r"(\$\d+)+$", "", name.removeprefix("\\"))
    stem = re.sub(r"\W", "_", stem.replace("__", "_"))
    if stem in KEYWORDS:
        return f"{stem}_"
    return stem if re.match(r"[A-Za-z_]", stem) else f"_{stem}"


def numbers(name):
    """Return the numbers that :func:`plain` drops, which are in order of declaration."""
    return [int(digits) for digits in re.findall(r"\$(\d+)", name)]


def unique(stem, taken):
    """Return ``stem``, numbered if it is already in the set ``taken``, and add it to the set."""
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    taken.add(name)
    return name


def rename_plain(names, ports):
    """Return a plain name for each of ``names``; ports choose first, then earlier declarations."""
    taken, renamed = set(), {}
    for name in sorted(names, key=lambda name: (name not in ports, plain(name), numbers(name))):
        renamed[name] = "\\" + unique(plain(name), taken)
    return renamed


def drop_blank_memories(text):
    """Return ``text`` without initial memory contents that are all zeros.

    Such contents would become an `initial` block with one line per row. No component of this kit
    reads a row that it has not written since reset; the benches start memories with random
    contents.
    """
    return BLANK.sub("", text)


def port_order(decl):
    """Return the sort key of a port: clock and reset first, then by name."""
    name = decl[2]
    return (name not in ("\\clk", "\\rst"), name)


class SharedModules:
    """Collection of the distinct modules found so far.

    Parameters
    ----------
    top : str
        Name of the top module, which no other module may take.
    """

    def __init__(self, top):
        self.taken = {top}
        self.by_body = {}
        self.texts = []

    def add(self, body, stem, top=None):
        """Return the name of the module with ``body``; a new module is named after ``stem``."""
        if body not in self.by_body:
            name = top or unique(stem, self.taken)
            self.by_body[body] = name
            self.texts.append(f"module \\{name}\n{body}end\n\n")
        return self.by_body[body]


def canonical_body(body, children):
    """Return a form of ``body`` that equal modules share, and the new names of its ports.

    ``children`` maps the original name of a module to its shared name and its new port names.
    """
    memories = re.findall(r"^  memory .*?(\\\S+)$", body, re.MULTILINE)
    cells = re.findall(r"^  cell \S+ (\\\S+)$", body, re.MULTILINE)
    decls = [(init, kind, name) for init, kind, name in WIRE.findall(body)]
    ports = {name for _, kind, name in decls if PORT.search(kind)}
    public = [name for _, _, name in decls if name.startswith("\\")]
    # Duplicates are removed in text order, as the order of a set differs between processes.
    renamed = rename_plain(dict.fromkeys([*public, *memories, *cells]), ports)

    def rename(match):
        if (name := match["memory"]) is not None:
            return '"\\' + renamed[f"\\{name}"] + '"' if f"\\{name}" in renamed else match[0]
        return renamed.get(match["name"], match[0])

    def rename_cell(match):
        if match[1] not in children:  # a primitive of the device
            return rename_lines(match[0], rename)
        child, child_ports = children[match[1]]
        lines = match[0].splitlines(keepends=True)
        head = re.sub(r"cell \S+ (\S+)", lambda m: f"cell \\{child} {renamed[m[1]]}", lines[0])
        connects = []
        for line in lines[1:-1]:
            port, sigspec = re.fullmatch(r"    connect (\S+) (.*)\n", line).groups()
            connects.append(f"    connect {child_ports[port]} {NAME.sub(rename, sigspec)}\n")
        return head + "".join(sorted(connects)) + lines[-1]

    parts, end = [], 0
    rest = WIRE.sub("", body)
    for match in CELL.finditer(rest):
        parts += [rename_lines(rest[end : match.start()], rename), rename_cell(match)]
        end = match.end()
    parts.append(rename_lines(rest[end:], rename))
    return wire_text(decls, renamed) + "".join(parts), {name: renamed[name] for name in ports}


def rename_lines(text, rename):
    """Rename in lines outside of instances; names of parameters and cell ports are left alone."""
    lines = []
    for line in text.splitlines(keepends=True):
        kept = re.match(r"    (?:parameter|connect) \S+ |  cell \S+ |", line)[0]
        lines.append(kept + NAME.sub(rename, line[len(kept) :]))
    return "".join(lines)


def wire_text(decls, renamed):
    """Return the declarations of all wires: ports first, numbered anew, then the others by name."""
    decls = [(init, kind, renamed.get(name, name)) for init, kind, name in decls]
    ports = sorted((decl for decl in decls if PORT.search(decl[1])), key=port_order)
    inner = [decl for decl in decls if not PORT.search(decl[1])]
    inner.sort(key=lambda decl: (decl[2].startswith("$"), len(decl[2]) * decl[2].startswith("$"),
                                 decl[2]))  # fmt: skip
    lines = []
    for number, (init, kind, name) in enumerate(ports):
        kind = re.sub(r"(input|output|inout) \d+", rf"\1 {number + 1}", kind)
        lines.append(f"{init}  wire {kind}{name}\n")
    lines += [f"{init}  wire {kind}{name}\n" for init, kind, name in inner]
    return "".join(lines)


def share_modules(text, *, top, stems):
    """Give structurally equal modules of an RTLIL design one body.

    Parameters
    ----------
    text : str
        RTLIL as Amaranth writes it.
    top : str
        Name of the top module, which stays.
    stems : dict of str to str
        Original name of a module (without backslash) to its new name, which is numbered on a clash.

    Returns
    -------
    str
        The same design, children before parents.
    """
    text = drop_blank_memories(ATTRIBUTE.sub("", text))
    bodies = {match[1]: match[2] for match in MODULE.finditer(text)}
    shared, done = SharedModules(top), {}

    def visit(name):
        body = bodies[name]
        for child in dict.fromkeys(CELL.findall(body)):
            if child in bodies and child not in done:
                visit(child)
        canonical, ports = canonical_body(body, done)
        original = name.removeprefix("\\")
        path = re.sub(r"\$\d+(?=\.|$)", "", original)  # suffix left by a signal of the same name
        stem = plain(stems.get(path, path.rpartition(".")[2]))
        done[name] = (shared.add(canonical, stem, top if original == top else None), ports)

    visit(f"\\{top}")
    return "".join(shared.texts)
