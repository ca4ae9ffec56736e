"""Every example of the gallery runs, draws and prints."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))
import gallery  # noqa: E402

LONG = {"plot_compare", "plot_digits_tsne", "plot_grid_search", "plot_orders"}
EXAMPLES = sorted(gallery.EXAMPLES.glob("plot_*.py"))


def marked(path):
    return pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in LONG))


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_an_example_draws_and_prints(path):
    from PIL import Image

    run = gallery.run_example(path)
    assert run.printed
    assert run.pictures
    for picture in run.pictures:
        pixels = np.asarray(Image.open(BytesIO(picture)).convert("RGB"))
        assert pixels.std() > 5  # not a white sheet


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_a_page(path):
    source = path.read_text()
    title, introduction, cells = gallery.parts(source)
    assert title
    assert introduction
    assert len(source.splitlines()) <= 70
    assert all(words and code for words, code in cells), "text and code in every part"
    page = gallery.page(path.stem, source, gallery.Run([b""], "printed\n"))
    assert page.startswith(f"# {title}\n")
    assert f"![{title}]({path.stem}_0.png)" in page
    assert "printed" in page


def test_the_index_shows_them_all():
    titles = {path.stem: gallery.parts(path.read_text())[:2] for path in EXAMPLES}
    index = gallery.index(titles)
    assert len(EXAMPLES) >= 5
    for name, (title, _) in titles.items():
        assert f"[{title}]({name}.md)" in index
