# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site (``make docs``): offline, and with warnings as errors."""

from pathlib import Path
import sys
import tomllib

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

project = "SplitJoin kit"
copyright = "the authors of the SplitJoin kit, Apache-2.0"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",  # the reference comes from docstrings
    "sphinx.ext.napoleon",  # … whose sections are NumPy's
]
exclude_patterns = ["waves"]

myst_heading_anchors = 6  # pages link to each other's headings
myst_enable_extensions = ["colon_fence"]

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = False
napoleon_use_ivar = True

html_theme = "furo"  # for dark screens and narrow ones too; needs nothing from the network
html_static_path = ["_static"]
html_css_files = ["screens.css"]
html_title = f"{project} {release}"
html_show_copyright = False
