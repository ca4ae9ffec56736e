"""Tables as Markdown has them."""

from __future__ import annotations

NOT_YET = "Not measured yet.\n"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a heading and rows, a line each."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
