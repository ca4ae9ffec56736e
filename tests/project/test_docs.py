"""The pages are true: links lead somewhere, commands exist, figures are those of the bench."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import unicodedata
from pathlib import Path

import click
import pytest

from outsample.cli import main
from outsample_lab.figures import markdown_table, write_figures

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
SITE = (ROOT / "mkdocs.yml").read_text()

sys.path.insert(0, str(DOCS))
import offline  # noqa: E402

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def of_name(path):
    return path.name


def prose(path):
    """Return a page without its blocks of code."""
    return FENCE.sub("", path.read_text())


def anchors(path):
    """Return the anchors that mkdocs and GitHub give to the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE):
        words = unicodedata.normalize("NFKD", heading.replace("`", "")).encode("ascii", "ignore")
        plain = re.sub(r"[^\w\s-]", "", words.decode()).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", plain))
    return found


@pytest.mark.parametrize("page", PAGES, ids=of_name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if path.parent.name == "gallery":  # made of an example when the site is built
            example = ROOT / "examples" / f"{path.stem}.py"
            assert path.stem == "index" or example.exists(), f"{page.name} links to {target}"
            continue
        assert path.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(path), f"{page.name} links to {target}"


def test_every_page_is_in_the_menu():
    listed = set(re.findall(r"^ +- .*: (\S+\.md)$", SITE, re.MULTILINE))
    assert {page.name for page in DOCS.glob("*.md")} == listed - {"gallery/index.md"}


def test_no_page_asks_another_host_for_anything():
    assert "font: false" in SITE
    sources = [*DOCS.glob("*.md"), *DOCS.glob("*.css"), ROOT / "mkdocs.yml"]
    for path in sources:
        text = path.read_text()
        assert not re.search(r"(src|data)=[\"']?(https?:)?//", text), path
        assert not re.search(r"!\[[^]]*\]\(https?:", text), path
        assert not re.search(r"url\([\"']?(https?:)?//|@import", text), path
    assert not re.search(r"^extra_(css|javascript):.*http", SITE, re.MULTILINE)


def test_the_build_refuses_what_comes_from_elsewhere(tmp_path):
    page = tmp_path / "index.html"
    page.write_text('<a href="https://a.example">out</a><img src="near.png"><script src="x.js">')
    assert offline.external_assets(tmp_path) == []
    for asset in (
        '<script async src="https://a.example/x.js">', "<img alt='' src=//a.example/x.png>",
        '<link rel="stylesheet" href="https://a.example/x.css">',
        '<link href="https://a.example" rel="preconnect">',
    ):  # fmt: skip
        page.write_text(asset)
        assert len(offline.external_assets(tmp_path)) == 1, asset
    page.write_text("")
    (tmp_path / "a.css").write_text("@font-face { src: url(https://a.example/f.woff2) }")
    assert offline.external_assets(tmp_path)[0].startswith("a.css: url(")
    with pytest.raises(SystemExit, match="not offline"):
        offline.on_post_build({"site_dir": str(tmp_path)})


def commands(path):
    """Return the lines of a page that call the program, in blocks and in the text."""
    for language, body in FENCE.findall(path.read_text()):
        if language in ("", "sh", "bash", "console", "shell"):
            for line in body.replace("\\\n", " ").splitlines():
                call = line.strip().removeprefix("$ ")
                if call.startswith("outsample "):
                    yield call
    for call in re.findall(r"`(outsample [a-z][^`\n]*)`", prose(path)):
        yield call


def check_command(call):
    """Raise ValueError unless the command and its options exist."""
    words = shlex.split(call, comments=True)[1:]
    command: click.Command = main
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        name = words.pop(0)
        command = command.get_command(None, name)
        if command is None:
            raise ValueError(f"there is no command {name!r}: {call}")
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    for word in words:
        if word in ("|", ">", "<", "&&", ";"):
            break
        option = word.partition("=")[0]
        if re.match(r"--?[a-z]", option) and option not in known | {"-h", "--help", "--version"}:
            raise ValueError(f"{command.name} has no option {option}: {call}")


@pytest.mark.parametrize("page", PAGES, ids=of_name)
def test_commands_exist(page):
    for call in commands(page):
        check_command(call)


def test_a_command_that_does_not_exist_would_be_found():
    check_command("outsample compare a.npy b.npy --out folder  # words")
    with pytest.raises(ValueError, match="no command 'fitt'"):
        check_command("outsample fitt a.npy")
    with pytest.raises(ValueError, match="no option --mpas"):
        check_command("outsample bench accuracy --mpas digits")


@pytest.mark.parametrize("page", PAGES, ids=of_name)
def test_figures_are_those_of_the_bench(page):
    text = page.read_text()
    assert write_figures.written(text) == text, "run: make figures"


def test_a_changed_figure_would_be_found():
    text = (DOCS / "comparison.md").read_text()
    changed = text.replace("0.0153", "0.0053", 1)
    assert changed != text
    assert write_figures.written(changed) == text


def test_results_of_something_else_are_refused():
    with pytest.raises(ValueError, match="not results of"):
        write_figures.condensed({"rows": []})


def test_figures_of_speed_are_those_of_a_full_run():
    target = {"work": "exact, D = 14: distance, over", "asked": 1.1, "found": 1.05, "low": 1.0,
              "high": 1.2, "unit": "times", "at_least": False, "met": True,
              "skipped": ""}  # fmt: skip
    missed = target | {"work": "Dask", "found": None, "low": None, "met": False, "skipped": "gone"}
    curve = {"chart": "Time of a row in a batch, D = 14", "name": "ours", "sizes": [1000.0, 1e6],
             "figures": [1.0, 2.5], "exponent": 0.13}  # fmt: skip
    run = {"quick": False, "cores": 2, "load": 0.1, "versions": {},
           "parts": [{"targets": [target, missed], "curves": [curve]}]}  # fmt: skip
    name, figures = write_figures.condensed(run)
    targets = write_figures.speed_targets(figures)
    assert name == "speed" and "over | **1.05** | 1–1.2 | ≤ 1.1 |" in targets
    assert "| Dask | not measured: gone |  | ≤ 1.1 |" in targets
    assert "| ours, D = 14 | 1 | 2.5 | 0.13 |" in write_figures.speed_sizes(figures)
    assert write_figures.speed_errors(figures) == markdown_table.NOT_YET
    with pytest.raises(ValueError, match="bench speed --quick"):
        write_figures.condensed(run | {"quick": True})


@pytest.mark.long
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs", reason="the site needs outsample[docs]")
    pytest.importorskip("mkdocstrings", reason="the site needs outsample[docs]")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr.replace("WARNING=1", "")
    assert (tmp_path / "gallery" / "index.html").exists()
    assert offline.external_assets(tmp_path) == []


def test_the_table_of_streams_is_of_recorded_days():
    row = {"name": "StreamingExtension", "median_rate": 0.006, "worst_rate": 0.039, "at_once": 1.0,
           "episodes": 49, "precision": 0.3, "loud_precision": 0.9, "score_precision": 0.4,
           "loud_score_precision": 0.8, "daily_precision": 0.5}  # fmt: skip
    chance = {"precision": 0.2, "loud_precision": 0.01, "daily_precision": 0.1}
    run = {"n_minutes": 9, "simulated": False, "versions": {}, "rows": [row], "chance": chance}
    name, figures = write_figures.condensed(run)
    assert name == "stream" and "| 0.6 % | 3.9 % | 49 of 49 | 0.30, 0.90 | 0.40, 0.80 | 0.50 |" in (
        write_figures.stream_days(figures)
    )
    with pytest.raises(ValueError, match="simulated"):
        write_figures.condensed(run | {"simulated": True})


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "running.md"], ids=of_name)
def test_nothing_is_installed_from_where_it_is_not(page):
    """The package is not on PyPI: what installs it first is a checkout."""
    assert not re.search(r"pip install [\"']?outsample", page.read_text())


def test_the_coverage_in_the_readme_is_that_of_the_table():
    table = (DOCS / "error_bars.md").read_text().partition("<!-- figures: coverage -->")[2]
    figures = re.findall(r"(\d+) / \d+ / \d+", table.partition("<!-- end -->")[0])
    by_isolation = [int(figure) for figure in figures]
    claim = f"by isolation {min(by_isolation)} to {max(by_isolation)} %"
    assert claim in " ".join((ROOT / "README.md").read_text().split())
