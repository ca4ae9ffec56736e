"""mkdocs hook: fail the build if a page loads anything from another host.

Links are allowed; scripts, styles, images and fonts from other hosts are not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

OTHER_HOST = r"(?:https?:)?//"
ASSETS = {
    "*.html": re.compile(
        rf"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?{OTHER_HOST}"
        rf"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon)[^>]*href=[\"']?{OTHER_HOST}"
        rf"|<link\b[^>]*\bhref=[\"']?{OTHER_HOST}[^>]*rel=[\"']?(?:stylesheet|preconnect|preload)"
    ),
    "*.css": re.compile(rf"(?:url\(|@import\s+)[\"']?{OTHER_HOST}"),
}


def external_assets(site: Path) -> list[str]:
    """Return the assets that pages of a built site would load from other hosts."""
    return [
        f"{path.relative_to(site)}: {match[0][:120]}"
        for pattern, asset in ASSETS.items()
        for path in sorted(site.rglob(pattern))
        for match in asset.finditer(path.read_text(encoding="utf-8"))
    ]


def on_post_build(config: Any) -> None:
    """Fail if a page loads an asset from another host; called by mkdocs."""
    if assets := external_assets(Path(config["site_dir"])):
        raise SystemExit("the site is not offline:\n" + "\n".join(assets))
