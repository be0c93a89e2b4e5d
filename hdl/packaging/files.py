# SPDX-License-Identifier: Apache-2.0
"""The files of a package."""

from dataclasses import replace
import hashlib
import json
from pathlib import Path

from hdl.bundle import describe_bundle
from hdl.families.choice import family_of
from hdl.registers.documents import register_texts
from hdl.shells.axi import AxiOptions
from hdl.shells.files import check_shells, describe_shell
from hdl.verilog.lint import WAIVERS

from .bench import bench_text, check_bench
from .checks import checks_text
from .headers import PackageNames, sv_package, with_orders, words_header
from .integrations import constraint_texts, core_file, litex_module, package_page, vivado_script
from .ipxact import component_xml
from .litex_soc import litex_soc
from .one_file import one_file

__all__ = ["package_files", "packages_in", "write_package"]


#: What a package says of its shell, as the manifest of a bundle does.
ABOUT_SHELL = ("options", "streams", "register_version", "registers")


def described(parameters, manifest, names, shell, texts, ports, axi):
    """Return the manifest with a part that is about the package, as JSON."""
    part = {
        "prefix": names.prefix,
        "top": names.top(shell),
        "shell": shell,
        "checksums": {
            name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()
        },
        "ports": ports,
    }
    if shell is not None:
        about = describe_shell(parameters, manifest["hash"], axi, {}, ports)
        part |= {key: about[key] for key in ABOUT_SHELL}
    manifest = {key: value for key, value in manifest.items() if key not in ("files", "checksums")}
    return json.dumps({**manifest, "package": part}, indent=2, ensure_ascii=False) + "\n"


def package_files(parameters, names=None, *, shell=None, bench=True, axi=None):
    """Return the texts of a package by the names of their files.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    names : PackageNames or None
        Names of modules, files and constants; by default those that begin with ``splitjoin_``.
    shell : str or None
        One of :data:`hdl.shells.names.SHELLS`; None for the bare accelerator.
    bench : bool
        Whether there is a test bench.
    axi : AxiOptions or None
        What an AXI shell looks like from outside; by default one input, one clock, AXI's names.

    Raises
    ------
    ValueError
        If the shell is unknown, if it does not suit the accelerator, if a path between clocks is
        not declared (:mod:`hdl.crossings`), or if a bench is asked for and the predicate is a
        custom one, or the accelerator an aggregate.
    """
    names = PackageNames() if names is None else names
    axi = AxiOptions() if axi is None else axi
    merged = ()
    if shell is not None:
        check_shells([shell])
        merged = axi.merged(parameters)
    if bench:
        check_bench(parameters)
    manifest, _ = describe_bundle(parameters)
    if merged:
        manifest = with_orders(manifest, family_of(parameters).orders)
    if shell is not None and axi.packet:
        for word in ("input_word", "result_word"):
            manifest = {**manifest, word: manifest[word] | {"bytes": axi.bytes_of(manifest[word])}}
    verilog, ports, inspection = one_file(parameters, manifest, names, shell, axi)
    table = shell and replace(axi.registers(parameters), name=names.name)
    texts = {
        f"{names.name}.v": verilog,
        f"{names.name}.vlt": WAIVERS.read_text(encoding="utf-8"),
        f"{names.name}_pkg.sv": sv_package(manifest, names, table),
        f"{names.name}_words.h": words_header(manifest, names),
        f"{names.name}.md": package_page(manifest, names, shell, ports, axi),
        f"{names.name}.core": core_file(manifest, names, shell, bench=bench),
        f"{names.name}_vivado.tcl": vivado_script(manifest, names, shell, ports, axi),
        f"{names.name}_checks.sv": checks_text(names.top(shell), ports, manifest, shell, axi),
        **constraint_texts(names, shell, inspection),
    }
    if table is not None:
        title = f"Registers of {names.name}"
        about = register_texts(table, title=title, digest=manifest["hash"])
        texts |= {f"{names.name}_registers{suffix}": text for suffix, text in about.values()}
        texts[f"{names.name}.xml"] = component_xml(manifest, names, shell, ports, table, axi)
        texts[f"{names.name}_litex.py"] = litex_module(manifest, names, shell, ports, axi)
        texts[f"{names.name}_litex_soc.py"] = litex_soc(names, shell, ports)
    if bench:
        texts[f"{names.name}_tb.sv"] = bench_text(parameters, manifest, names, shell, ports, axi)
    texts[f"{names.name}.json"] = described(parameters, manifest, names, shell, texts, ports, axi)
    return texts


def write_package(parameters, output, names=None, **options):
    """Write a package into the folder ``output``; return the paths of its files.

    Missing folders are created. Files of these names are overwritten, others stay.

    Parameters
    ----------
    parameters, names, **options
        See :func:`package_files`.
    output : path-like
    """
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"Output {str(folder)!r} is a file, not a folder")
    texts = package_files(parameters, names, **options)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def packages_in(folder):
    """Return the Verilog files of the packages in ``folder``, with the names of their tops."""
    tops = {}
    for path in sorted(Path(folder).glob("*.json")):
        about = json.loads(path.read_text(encoding="utf-8"))
        if "package" in about:
            tops[path.with_suffix(".v")] = about["package"]["top"]
    return tops
