"""Build a self-contained HTML page from sections of text, tables and pictures.

The page loads no external resources: styles and pictures are embedded in the file, so it can be
mailed, printed, or opened offline.
"""

import os
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from outsample.files.atomic import atomic_write


class Picture(NamedTuple):
    """An image file with its alternative text and caption."""

    data: bytes  # A PNG or SVG file
    alt: str  # Alternative text for screen readers
    caption: str = ""


class Table(NamedTuple):
    """A table of formatted strings; the first column is text, the others are numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    highlight: frozenset[int] = frozenset()  # Highlighted rows, counted from 0


class Section(NamedTuple):
    """A heading, paragraphs, code, tables, and pictures in as many columns as fit."""

    heading: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    code: str = ""


STYLE = files("outsample.report").joinpath("viewer", "page.css").read_text("utf-8")


def build_page(
    title: str,
    sections: Sequence[Section],
    *,
    lead: str = "",
    facts: Sequence[tuple[str, str]] = (),
    hero: Picture | None = None,
    footer: str = "",
) -> str:
    """Return a complete HTML document; `facts` are pairs of a number and its description.

    All text is escaped.

    >>> page = build_page("Errors & bounds", [Section("A < B", ["No errors."])])
    >>> "<h1>Errors &amp; bounds</h1>" in page, "<h2>A &lt; B</h2>" in page
    (True, True)
    """
    hero_html = f'<div class="hero pictures">{_figure(hero)}</div>' if hero else ""
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head><body><main>",
            f"<header><h1>{escape(title)}</h1>{_paragraph(lead, 'lead')}</header>",
            facts_html(facts),
            hero_html,
            *map(_section, sections),
            f"<footer>{escape(footer)}</footer>" if footer else "",
            "</main></body></html>",
            "",
        ]
    )


def write_file(path: str | os.PathLike[str], data: str | bytes) -> Path:
    """Write a file atomically, creating its folders, and return its absolute path."""
    target = Path(path).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as stream:
        stream.write(data.encode() if isinstance(data, str) else data)
    return target


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Create a folder; raise OSError if it is not writable, before minutes of work are lost."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def facts_html(facts: Sequence[tuple[str, str]]) -> str:
    """Return the HTML of numbers with their descriptions, side by side."""
    cells = "".join(
        f"<div><dt>{escape(description)}</dt><dd>{escape(number)}</dd></div>"
        for number, description in facts
    )
    return f"<dl>{cells}</dl>" if cells else ""


def _section(section: Section) -> str:
    parts = [f"<section><h2>{escape(section.heading)}</h2>"]
    parts += [_paragraph(text) for text in section.paragraphs]
    if section.code:
        parts.append(f"<pre>{escape(section.code)}</pre>")
    parts += [table_html(table) for table in section.tables]
    if section.pictures:
        parts.append(f'<div class="pictures">{"".join(map(_figure, section.pictures))}</div>')
    return "\n".join([*parts, "</section>"])


def _paragraph(text: str, role: str = "") -> str:
    if not text:
        return ""
    return f'<p class="{role}">{escape(text)}</p>' if role else f"<p>{escape(text)}</p>"


def table_html(table: Table) -> str:
    """Return the HTML of a table that scrolls horizontally if it is wider than the page."""
    # Outside the table element: inside, it would scroll away with a wide table on a phone.
    caption = _paragraph(table.caption, "note")
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    body = "".join(
        f"<tr{' class=mark' if i in table.highlight else ''}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row)
        + "</tr>\n"
        for i, row in enumerate(table.rows)
    )
    return (
        f'{caption}<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _figure(picture: Picture) -> str:
    kind = "image/png" if picture.data.startswith(b"\x89PNG") else "image/svg+xml"
    source = f"data:{kind};base64,{b64encode(picture.data).decode('ascii')}"
    caption = f"<figcaption>{escape(picture.caption)}</figcaption>" if picture.caption else ""
    return f'<figure><img src="{source}" alt="{escape(picture.alt)}">{caption}</figure>'
