"""The pictures: right format, same bytes for same data, and a clear word without matplotlib."""

import sys
from io import BytesIO

import numpy as np
import pytest

from outsample import plots
from outsample.lab.datasets import random_angles, sphere, sphere_map

pytest.importorskip("matplotlib")


@pytest.fixture
def ball():
    truth = sphere_map(random_angles(20))
    return sphere(8).Y, truth, truth + 0.01


@pytest.fixture
def placed():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(60, 2))
    hidden = np.arange(60) % 5 == 0
    return Y, np.arange(60) % 10, hidden, Y[hidden] + 0.05


def drawings(ball, placed):
    Y, _, hidden, places = placed
    return {
        "sphere": lambda: plots.placed_sphere(*ball, title="a title", magnify=5),
        "map": lambda: plots.placed_map(*placed, title="a title"),
        "errors": lambda: plots.error_map(Y, hidden, places, 1.4),
        "hero": lambda: plots.hero(placed, ball),
        "chart": lambda: plots.error_chart(["a", "b"], [1e-2, 1e-5], [None, 2e-2]),
    }


@pytest.mark.parametrize("name", ["sphere", "map", "errors", "hero", "chart"])
def test_equal_data_give_equal_files_of_the_stated_format(ball, placed, name):
    draw = drawings(ball, placed)[name]
    data = draw()
    assert data == draw()
    if name == "chart":
        assert b"<svg" in data and b"<dc:date>" not in data
    else:
        image = pytest.importorskip("PIL.Image").open(BytesIO(data))
        assert image.format == "PNG"
        corner = image.convert("RGB").getpixel((2, 2))
        assert corner == (255, 255, 255)  # a light ground, in dark mode too
        assert len(image.convert("RGB").getcolors(1 << 24)) > 20  # something was drawn


def test_hero_is_as_wide_as_the_readme_wants_and_small(ball, placed):
    data = plots.hero(placed, ball)
    assert pytest.importorskip("PIL.Image").open(BytesIO(data)).width == 1600
    assert len(data) < 200_000


def test_the_caller_s_settings_are_left_alone(ball):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plots.placed_sphere(*ball)
    assert dict(matplotlib.rcParams) == before


def test_the_ends_of_a_chart_s_scale_move_its_dots():
    wide, narrow = (
        plots.error_chart(["a"], [1e-3], [2e-3], limits=(low, 1e-1)) for low in (1e-6, 1e-4)
    )
    assert wide != narrow


def test_without_matplotlib_the_message_names_the_extra(monkeypatch, ball):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install outsample\[plots\]"):
        plots.placed_sphere(*ball)
