"""A hook of mkdocs: the built site asks no other host for anything, or the build fails.

Links that a reader may follow are fine; scripts, styles, pictures and fonts from elsewhere are not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ELSEWHERE = r"(?:https?:)?//"
ASSETS = {
    "*.html": re.compile(
        rf"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?{ELSEWHERE}"
        rf"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon)[^>]*href=[\"']?{ELSEWHERE}"
        rf"|<link\b[^>]*\bhref=[\"']?{ELSEWHERE}[^>]*rel=[\"']?(?:stylesheet|preconnect|preload)"
    ),
    "*.css": re.compile(rf"(?:url\(|@import\s+)[\"']?{ELSEWHERE}"),
}


def asked_elsewhere(site: Path) -> list[str]:
    """Return what the pages of a built site would load from other hosts."""
    return [
        f"{path.relative_to(site)}: {found[0][:120]}"
        for pattern, asset in ASSETS.items()
        for path in sorted(site.rglob(pattern))
        for found in asset.finditer(path.read_text(encoding="utf-8"))
    ]


def on_post_build(config: Any) -> None:
    """Fail if a page loads something from elsewhere; called by mkdocs."""
    if found := asked_elsewhere(Path(config["site_dir"])):
        raise SystemExit("the site is not offline:\n" + "\n".join(found))
