"""The pictures: right format, same bytes for same data, and a clear word without matplotlib."""

import sys
from io import BytesIO

import numpy as np
import pytest

from outsample import plots

pytest.importorskip("matplotlib")


@pytest.fixture
def placed():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(60, 2))
    hidden = np.arange(60) % 5 == 0
    return Y, np.arange(60) % 10, hidden, Y[hidden] + 0.05


def drawings(placed):
    Y, _, hidden, places = placed
    return {
        "map": lambda: plots.placed_map(*placed, title="a title"),
        "errors": lambda: plots.error_map(Y, hidden, places, 1.4),
        "hero": lambda: plots.hero(*placed),
    }


@pytest.mark.parametrize("name", ["map", "errors", "hero"])
def test_equal_data_give_equal_files_of_the_stated_format(placed, name):
    draw = drawings(placed)[name]
    data = draw()
    assert data == draw()
    image = pytest.importorskip("PIL.Image").open(BytesIO(data))
    assert image.format == "PNG"
    corner = image.convert("RGB").getpixel((2, 2))
    assert corner == (255, 255, 255)  # a light background, also in dark mode
    assert len(image.convert("RGB").getcolors(1 << 24)) > 20  # something was drawn


def test_hero_is_as_wide_as_the_readme_wants_and_small(placed):
    data = plots.hero(*placed)
    assert pytest.importorskip("PIL.Image").open(BytesIO(data)).width == 1600
    assert len(data) < 200_000


def test_the_caller_s_settings_are_left_alone(placed):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.placed_map(*placed)
    assert dict(matplotlib.rcParams) == before


def test_without_matplotlib_the_message_names_the_extra(monkeypatch, placed):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install outsample\[plots\]"):
        plots.placed_map(*placed)
