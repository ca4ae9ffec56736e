"""The Python code on the pages runs, each page from top to bottom.

``<!-- needs NAME -->`` before a block says which module, or name of a module, it needs; without it
the rest of the page is not run. Every block compiles.
"""

from __future__ import annotations

import re
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.manifold import TSNE

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:<!-- needs (\S+) -->\n)?^```python[^\n]*\n(.*?)^```", re.DOTALL | re.M)
LONG = {"index.md", "parameters.md", "faq.md", "traffic.md", "umap_service.md"}
MAPS: dict[bytes, np.ndarray] = {}


def blocks(page):
    """Return the needs, the first line's number and the code of each block."""
    text = page.read_text()
    for match in BLOCK.finditer(text):
        code = match[2]
        if ">>>" not in code:  # else a doctest, which runs as such
            yield match[1], text[: match.start(2)].count("\n"), code


def is_there(name):
    module, _, attribute = name.partition(".")
    try:
        found = import_module(module)
    except ImportError:
        return False
    return not attribute or hasattr(found, attribute)


def marked(page):
    return pytest.param(page, id=page.name, marks=[pytest.mark.long] * (page.name in LONG))


@pytest.fixture
def maps_made_once(monkeypatch):
    """Many pages begin with the same t-SNE map."""
    make = TSNE.fit_transform

    def kept(self, X, y=None):
        key = X.tobytes() + repr(self).encode()
        if key not in MAPS:
            MAPS[key] = make(self, X)
        self.embedding_ = MAPS[key]
        return MAPS[key]

    monkeypatch.setattr(TSNE, "fit_transform", kept)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_compiles(page):
    for _, line, code in blocks(page):
        compile("\n" * line + code, str(page), "exec")


@pytest.mark.parametrize(
    "page", [marked(page) for page in PAGES if next(blocks(page), None) is not None]
)
def test_code_runs(page, maps_made_once, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for needs, line, code in blocks(page):
        if needs is not None and not is_there(needs):
            pytest.skip(f"{page.name} needs {needs} from line {line}")
        smaller = code.replace("1500", "400").replace("X[400:]", "X[400:500]")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of scikit-learn, about graphs
            exec(compile("\n" * line + smaller, str(page), "exec"), names)


@pytest.mark.long
def test_the_example_of_the_readme_runs_as_it_is(capsys):
    _, _, code = next(blocks(ROOT / "README.md"))
    assert len([line for line in code.splitlines() if line and "import" not in line]) <= 8
    exec(code, {})
    lines = capsys.readouterr().out.splitlines()  # t-SNE differs between processors, ranks do not
    assert len(lines) == 3 and lines[-1].endswith("p = 0.0007")
