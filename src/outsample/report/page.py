"""Build a self-contained HTML page from sections of text, tables and pictures.

The page loads no external resources: styles and pictures are embedded in the file, so it can be
mailed, printed, or opened offline.
"""

import os
import tempfile
from base64 import b64encode
from collections.abc import Sequence
from html import escape
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


STYLE = """
:root { color-scheme: light dark; --ground: #fbfbf9; --card: #fff; --ink: #1f2933; --soft: #55606c;
  --line: #e2e5e9; --accent: #0072b2; --mark: #eaf4fb; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --card: #1b2027; --ink: #e6e9ed;
  --soft: #a3adb8; --line: #303841; --accent: #6fbdf0; --mark: #1d3344; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 17px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 3rem 1.25rem 4rem; }
h1 { font-size: clamp(1.9rem, 5vw, 2.7rem); line-height: 1.15; letter-spacing: -.02em;
  margin: 0 0 .8rem; }
h2 { font-size: 1.4rem; line-height: 1.25; margin: 0 0 .6rem; letter-spacing: -.01em; }
p { margin: 0 0 1rem; max-width: 44rem; }
.lead { font-size: 1.15rem; color: var(--soft); }
dl { display: grid; gap: 1rem; margin: 1.6rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); }
dl > div { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .8rem 1.1rem; display: flex; flex-direction: column-reverse;
  justify-content: flex-end; }
dd { margin: 0; font-size: 1.65rem; font-weight: 650; line-height: 1.3; color: var(--accent);
  font-variant-numeric: tabular-nums; }
dt { color: var(--soft); font-size: .9rem; line-height: 1.4; }
section { margin-top: 3rem; padding-top: 2rem; border-top: 1px solid var(--line); }
.scroll { overflow-x: auto; margin: .5rem 0 1.4rem; }
table { border-collapse: collapse; width: 100%; font-size: .93rem;
  font-variant-numeric: tabular-nums; }
.note { color: var(--soft); font-size: .88rem; margin: 1.4rem 0 0; max-width: none; }
th, td { padding: .5rem .8rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { color: var(--soft); font-weight: 600; border-bottom-width: 2px; }
tr.mark td { background: var(--mark); font-weight: 600; }
.pictures { display: grid; gap: 1.2rem; margin: 1.4rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: .6rem;
  overflow: hidden; break-inside: avoid; display: flex; flex-direction: column; }
figure img { display: block; width: 100%; max-width: 50rem; height: auto; margin: auto; }
.hero figure img { max-width: none; }
figcaption { color: #55606c; font-size: .88rem; line-height: 1.45; padding: .7rem 1rem .9rem;
  border-top: 1px solid #eceef1; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: .6rem;
  padding: .9rem 1.1rem; overflow-x: auto; font: .9rem/1.55 ui-monospace, "DejaVu Sans Mono",
  Menlo, Consolas, monospace; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) { main { padding-top: 2rem; } table { font-size: .85rem; }
  th, td { padding: .45rem .4rem; } td:first-child { white-space: normal; } }
@media print { body { background: #fff; font-size: 10pt; } main { padding: 0; max-width: none; }
  dl { grid-template-columns: repeat(3, 1fr); } .scroll { overflow: visible; }
  table { font-size: .85rem; } section { margin-top: 1.5rem; padding-top: 1.2rem; }
  table, figure, pre { break-inside: avoid; }
  h2 { break-after: avoid; } }
"""


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
