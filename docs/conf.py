"""Sphinx configuration: MyST pages, warnings are errors (`make docs`)."""

project = "dray"
author = "the dray authors"
extensions = ["myst_parser"]
html_theme = "furo"
myst_heading_anchors = 3
exclude_patterns = ["_build"]
