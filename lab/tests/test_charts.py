"""Charts of errors."""

import pytest

from outsample_lab.plots.dots import error_chart

pytest.importorskip("matplotlib")


def test_a_chart_is_the_same_svg_for_the_same_data():
    first, again = (error_chart(["a", "b"], [1e-2, 1e-5], [None, 2e-2]) for _ in range(2))
    assert first == again
    assert b"<svg" in first and b"<dc:date>" not in first


def test_the_ends_of_a_chart_s_scale_move_its_dots():
    wide, narrow = (error_chart(["a"], [1e-3], [2e-3], limits=(low, 1e-1)) for low in (1e-6, 1e-4))
    assert wide != narrow
