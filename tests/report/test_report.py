"""The page: complete, self-contained, escaped, and written whole or not at all."""

import base64
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from outsample.report.map_data import CandidateTrial, MapData, PointSet
from outsample.report.map_words import selection_table
from outsample.report.page import Picture, Section, Table, build_page, write_file

PNG = b"\x89PNG\r\n\x1a\n not a real one"
NASTY = "<script>alert('a & \"b\"')</script>"
VOID = {"meta", "img", "br", "!doctype"}


class Outline(HTMLParser):
    """Collects text and attributes, and checks that every tag is closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.seen, self.text, self.attributes = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def page():
    section = Section(
        NASTY,
        [NASTY, "second"],
        [Table([NASTY, "b"], [["x", "1"], [NASTY, "2"]], NASTY, frozenset({1}))],
        [Picture(PNG, NASTY, NASTY), Picture(b"<svg></svg>", "chart")],
        code=NASTY,
    )
    return build_page(
        NASTY, [section], lead=NASTY, facts=[(NASTY, NASTY)], hero=Picture(PNG, NASTY), footer=NASTY
    )


def test_all_text_is_escaped_and_none_is_lost(page):
    outline = Outline(page)
    assert "script" not in outline.seen
    # Title twice, lead, fact and its words, heading, paragraph, code, table, caption, footer.
    assert outline.text.count(NASTY) == 13
    assert outline.attributes.count(("alt", NASTY)) == 2


def test_pictures_are_part_of_the_page(page):
    sources = [value for name, value in Outline(page).attributes if name == "src"]
    assert len(sources) == 3
    assert sources[0] == "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert sources[2].startswith("data:image/svg+xml;base64,")


def test_nothing_is_loaded_from_elsewhere(page):
    assert not re.search(r"https?://|@import|url\(|<link|<script", page.replace(NASTY, ""))


def test_marked_rows_are_the_stated_ones(page):
    rows = re.findall(r"<tr( class=mark)?><td>", page)
    assert rows == ["", " class=mark"]


def test_an_almost_empty_page_has_no_empty_parts():
    outline = Outline(build_page("t", [Section("only a heading")]))
    assert not {"p", "table", "pre", "figure", "footer", "dl"} & set(outline.seen)


def test_page_is_written_whole_into_new_folders(tmp_path):
    path = write_file(tmp_path / "a" / "b" / "index.html", "ä")
    assert path.is_absolute()
    assert path.read_text(encoding="utf-8") == "ä"
    assert os.listdir(path.parent) == ["index.html"]


def test_a_failed_write_keeps_the_old_page_and_leaves_nothing_behind(tmp_path):
    path = write_file(tmp_path / "index.html", "old")
    with pytest.raises(UnicodeEncodeError):
        write_file(path, "new \ud800")  # half a character, which no file can hold
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["index.html"]


def test_the_table_of_models_shows_the_round_of_the_selected_one():
    """All-points models are tuned on more rows than the last round has."""
    points = PointSet(np.zeros((3, 2)), {})
    trials = [
        CandidateTrial("blend", 0.10, 2000, 1.0),
        CandidateTrial("local", 0.11, 2000, 1.0),
        CandidateTrial("process", 0.05, 2500, 1.0),
        CandidateTrial("screened", 0.20, 150, 1.0),
    ]
    data = MapData(["a", "b"], points, None, 1.0, 0.9, trials, "blend", np.arange(3))
    table = selection_table(data)
    assert [row[0] for row in table.rows] == ["blend", "local"]
    assert table.highlight == {0}
