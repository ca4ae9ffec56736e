"""Markdown tables."""

from __future__ import annotations

NOT_YET = "Not measured yet.\n"


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table with one line per row."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
