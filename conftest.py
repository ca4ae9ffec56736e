"""Modules whose examples need a package that is not there are not collected."""

from importlib.util import find_spec

NEEDS = {"src/outsample/anndata.py": "anndata", "src/outsample/files/atlas.py": "pyarrow"}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]
