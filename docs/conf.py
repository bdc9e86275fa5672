"""How the documentation is built: ``make docs`` writes it to docs/_build/html."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

import calibrant

project = "calibrant"
author = "The calibrant developers"
version = release = calibrant.__version__
copyright = f"2026, the calibrant developers, version {version}"  # noqa: A001

html_math_renderer = "mathml"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "check_pages",
    "code_blocks",
    "commands",
    "data_tables",
    "live_report",
    "llms",
    "study_tables",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "**/README.rst", "data/README.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

default_role = "autolink"  # a name of ours in a docstring links to its page
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "show_memory": False,
    "min_reported_time": 600,
    "download_all_examples": False,
    "remove_config_comments": True,
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "show_signature": False,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("calibrant",),
    "capture_repr": (),
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js", ("report_frame.js", {"defer": "defer"})]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "logo": {
        "text": "calibrant",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "get_started": [], "changelog": []}


def _skip_foreign(_app, _what, _name, thing, _skip, _options):  # noqa: ANN001, ANN202
    """Leave out what classes inherit from scikit-learn; it is documented there."""
    module = getattr(thing, "__module__", None) or ""
    return True if module.startswith("sklearn") else None


def setup(app):  # noqa: ANN001, ANN201
    """Choose what pages of the reference show."""
    app.connect("autodoc-skip-member", _skip_foreign)
