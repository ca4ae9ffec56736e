"""mkdocs hook: run every ``examples/plot_*.py`` and add a page with its figures to the site.

The docstring of an example has a title, an empty line and an introduction. Comments after a line
``# %%`` become text, the lines after them stay code. Pages and figures are written to the site
only.
"""

from __future__ import annotations

import io
import re
import runpy
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

EXAMPLES = Path(__file__).parent.parent / "examples"
FIRST = "plot_digits_tsne"  # the others follow by name


class Run(NamedTuple):
    """Figures of an example as PNG, and its printed output."""

    pictures: list[bytes]
    printed: str


def run_example(path: Path) -> Run:
    """Run an example without a window and return its figures and output."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from outsample.plots.canvas import SETTINGS

    plt.close("all")
    printed = io.StringIO()
    show, plt.show = plt.show, lambda: None  # plt.show warns if there is no window
    try:
        with plt.rc_context(SETTINGS), redirect_stdout(printed):
            runpy.run_path(str(path), run_name="__main__")
            return Run([_png(plt.figure(number)) for number in plt.get_fignums()],
                       printed.getvalue())  # fmt: skip
    finally:
        plt.show = show
        plt.close("all")


def _png(figure: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120)
    return stream.getvalue()


def parts(source: str) -> tuple[str, str, list[tuple[str, str]]]:
    r"""Return the title, the introduction and the cells of an example as (text, code) pairs.

    >>> parts('A title.\n\nMore.\n\n# %%\n# A\n# text.\nx = 1\n')
    ('A title', 'More.', [('A\ntext.', 'x = 1')])
    """
    head, *cells = re.split(r"(?m)^# %%\n", source)
    title, _, introduction = head.strip().strip('"').strip().partition("\n")
    return title.strip().rstrip("."), introduction.strip(), [_cell(cell) for cell in cells]


def _cell(cell: str) -> tuple[str, str]:
    lines = cell.splitlines()
    n_text = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    text = "\n".join(line.removeprefix("#").strip() for line in lines[:n_text])
    return text, "\n".join(lines[n_text:]).strip()


def page(name: str, source: str, run: Run) -> str:
    """Return the page of an example as Markdown."""
    title, introduction, cells = parts(source)
    pictures = "\n\n".join(f"![{title}]({name}_{i}.png)" for i in range(len(run.pictures)))
    body = "\n\n".join(f"{text}\n\n```python\n{code}\n```" for text, code in cells)
    printed = f"Output:\n\n```text\n{run.printed.rstrip()}\n```" if run.printed else ""
    origin = f"`examples/{name}.py`, run when this page was built."
    return "\n\n".join([f"# {title}", introduction, pictures, body, printed, origin]) + "\n"


def index(titles: dict[str, tuple[str, str]]) -> str:
    """Return the overview page with a figure of each example."""
    cards = "\n\n".join(
        f"- [![{title}]({name}_0.png)]({name}.md)\n\n    **[{title}]({name}.md)**\n\n"
        f"    {introduction.split('. ')[0].rstrip('.')}."
        for name, (title, introduction) in titles.items()
    )
    text = "Short example programs with their figures. Each is a file in `examples`."
    return f'# Gallery\n\n{text}\n\n<div class="grid cards" markdown>\n\n{cards}\n\n</div>\n'


def _generated() -> Iterator[tuple[str, str | bytes]]:
    titles = {}
    paths = EXAMPLES.glob("plot_*.py")
    for path in sorted(paths, key=lambda path: (path.stem != FIRST, path.stem)):
        source, run = path.read_text(), run_example(path)
        title, introduction, _ = parts(source)
        titles[path.stem] = title, " ".join(introduction.split())
        yield f"gallery/{path.stem}.md", page(path.stem, source, run)
        for i, picture in enumerate(run.pictures):
            yield f"gallery/{path.stem}_{i}.png", picture
    yield "gallery/index.md", index(titles)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and figures to the site; called by mkdocs."""
    from mkdocs.structure.files import File

    for name, content in _generated():
        files.append(File.generated(config, name, content=content))
    return files
