"""The report page: summary, examples, settings."""

import os
from pathlib import Path
from typing import Any

from outsample.plots.canvas import can_draw
from outsample.report.page import Section, Table, build_page, write_file
from outsample_lab.paper.page.complexity_section import complexity_part
from outsample_lab.paper.page.curve_section import curve_part, lowest, standing
from outsample_lab.paper.page.minute_labels import score_of, short_title
from outsample_lab.paper.page.sphere_section import sphere_parts
from outsample_lab.paper.page.traffic_section import traffic_parts
from outsample_lab.paper.page.viewer import Part, with_viewer
from outsample_lab.paper.reproduction_results import Data, Results
from outsample_lab.paper.traffic_day import TrafficDay
from outsample_lab.wording import number, percent, plural, together


def write_report(out_dir: str | os.PathLike[str], results: Results) -> Path:
    """Write the self-contained ``report.html`` to a folder, which is created if missing."""
    # Without matplotlib it has a note instead of pictures.
    return write_file(Path(out_dir) / "report.html", build_report(results))


def build_report(results: Results) -> str:
    """Return the page's HTML."""
    drawing = can_draw()
    note = "" if drawing else "Install outsample[plots] and run it again to see pictures. "
    suffix = " (simulated traffic)" if results.data.simulated else ""
    parts = [
        Part(_summary(results)),
        *sphere_parts(results.sphere, drawing),
        Part(_data(results.data, suffix)),
        curve_part(results.extension_curve, suffix, drawing),
        *traffic_parts(results.traffic_day, suffix, drawing),
        complexity_part(results.complexity, drawing),
        Part(_settings(results)),
    ]
    html = build_page(
        "The experiments of the paper, reproduced",
        [part.section for part in parts],
        lead=f"Section 7 of the paper: printed and measured numbers. {results.paper}.",
        facts=_facts(results),
        footer=f"{note}Made by outsample reproduce on this computer in {results.seconds:.0f} s.",
    )
    return with_viewer(html, parts)


def _facts(results: Results) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    met, printed = results.sphere.met
    least, total = lowest(results.extension_curve)
    facts = [
        (f"{met} of {printed}", "mean errors of Table 7.1 at or below the paper's"),
        (f"{least} of {total}", "training sizes of Fig. 7.3 at which PCAExtension() with all"
         " defaults has the lowest mean error"),
    ]  # fmt: skip
    trial = results.traffic_day.trials[0]
    score = score_of(trial, "abnormality")
    if score.auc_loud is not None:
        loud = plural(int(trial.loud.sum()), "loud minute")
        words = (
            f"area under the ROC curve, abnormality, {loud} of {trial.day}; all labelled"
            f" minutes: {number(score.auc)}"
        )
        facts.append((number(score.auc_loud), words))
    if results.data.simulated:
        facts.insert(0, ("Simulated", "traffic: Example II does not use real data"))
    return facts


def _summary(results: Results) -> Section:
    ball, curve, data = results.sphere, results.extension_curve, results.data
    met, printed = ball.met
    orders = ball.convergence.orders
    powers = ", ".join(f"h^{c.slope:.2f} (order {c.order})" for c in orders)
    words = [
        *([data.notice] if data.notice else []),
        f"Example I, the sphere: {met} of the {printed} mean errors of Table 7.1 are at or below"
        " the printed ones. Errors fall with the step h of the grid about as"
        f" {powers}, and {percent(min(c.held for c in orders))} of the single placements are"
        " within their certificate.",
        f"Example II, traffic, Fig. 7.3: {standing(curve)}",
        "Example II, anomalies: the table shows how well each score ranks loud attacks before"
        " minutes without a label.",
    ]
    if results.size != "full":
        words.insert(0, f"This was a {results.size} run: fewer grids, training sizes and"
                     " repetitions than a full one, and rougher numbers.")  # fmt: skip
    return Section("Summary", words, [_areas(results.traffic_day)])


def _areas(day: TrafficDay) -> Table:
    """Return a table of the AUC of all trials for loud attacks."""
    names = [(score.name, short_title(score)) for score in day.trials[0].scores]
    rows = []
    for trial in day.trials:
        areas = [number(score_of(trial, name).auc_loud) for name, _ in names]
        rows.append([trial.title, str(trial.loud.sum()), *areas])
    return Table(
        ["New minutes", "Loud", *(title for _, title in names)],
        rows,
        "Area under the ROC curve; 1 is perfect, 0.5 is chance. Loud: minutes with at least"
        f" {day.loud_connections} connections of an attack; with few of them, AUC is approximate.",
    )


def _data(data: Data, suffix: str) -> Section:
    features = data.features
    words = [
        *([data.notice] if data.notice else []),
        data.not_public,
        f"Map of {data.map_day}, new day {data.new_day}; features were built from:"
        f" {features.built_from}, {features.n_minutes} minutes. The 14 features:"
        f" {', '.join(features.names)}.",
    ]
    if features.max_difference is not None:
        agree = "agree" if features.labels_agree else "do not agree"
        words.append(
            "Compared with a published table of the same minutes, features differ by at most"
            f" {number(features.max_difference)}, and the labels {agree}."
        )
    return Section(f"Example II: the data{suffix}", words)


def _settings(results: Results) -> Section:
    times = {
        part: f"{getattr(results, part).seconds:.1f} s"
        for part in ("sphere", "extension_curve", "traffic_day", "complexity")
    }
    tables = [
        Table(["Parameter", "Value"], _lines(results.parameters)),
        Table(["Seed of", "Value"], _lines(results.seeds)),
        Table(["Package", "Version"], _lines(results.versions)),
        Table(["Part", "Time"], _lines(times | {"all": f"{results.seconds:.1f} s"})),
    ]
    return Section("Parameters, seeds, versions and times", [], tables)


def _lines(values: dict[str, Any], before: str = "") -> list[list[str]]:
    """Return one row per setting; nested settings have a path."""
    lines = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines += _lines(value, f"{before}{key}: ")
        else:
            lines.append([f"{before}{key}", together(value)])
    return lines
