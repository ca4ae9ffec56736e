"""Files of the page, read once: a path is looked up, never opened."""

from __future__ import annotations

from importlib import resources

from outsample.report.page import STYLE

# Scripts of the report page that draw a map.
VIEWER = ("packing", "colours", "raster", "map", "lines", "hands", "card", "legend")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return bodies and types by path; the page itself is at ``/``."""
    viewer = resources.files("outsample.report").joinpath("viewer")
    files = {}
    for file in resources.files("outsample.service").joinpath("page").iterdir():
        kind = KINDS.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/{file.name}"
            files[path] = file.read_bytes(), kind
    for name in VIEWER:
        files[f"/viewer/{name}.js"] = viewer.joinpath(f"{name}.js").read_bytes(), KINDS[".js"]
    style = STYLE.encode() + viewer.joinpath("map.css").read_bytes()
    return files | {"/viewer/page.css": (style, KINDS[".css"])}
