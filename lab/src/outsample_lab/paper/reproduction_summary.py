"""Summary of the results of `outsample reproduce` for a terminal.

The scores of Fig. 7.6 are shown as on the page. Table 7.1 and the errors of Fig. 7.3 are too wide
for a terminal of 80 columns, and have one row per number here.
"""

from outsample.report.page import Table
from outsample_lab.paper.extension_curve import AUTO, ExtensionCurve
from outsample_lab.paper.page.scores_section import score_table
from outsample_lab.paper.reproduction_results import Results
from outsample_lab.paper.sphere_table import TableRow
from outsample_lab.wording import ABSENT


def summary_tables(results: Results) -> list[tuple[str, Table]]:
    """Return Table 7.1, the lowest curves of Fig. 7.3, and the AUC of the trials of Fig. 7.6."""
    made_up = " (simulated)" if results.data.simulated else ""
    lowest = _lowest_table(results.extension_curve)
    return [
        ("Table 7.1: mean error", _error_table(results.sphere.table)),
        (f"Fig. 7.3: error over the size of the map{made_up}", lowest),
        *(
            (f"Fig. 7.6, {trial.name}{made_up}", score_table(trial))
            for trial in results.traffic_day.trials
        ),
    ]


def _error_table(rows: list[TableRow]) -> Table:
    lines = [
        [row.title, str(row.n_points), f"{row.error:.2e}", f"{row.spread:.0e}",
         ABSENT if row.paper is None else f"{row.paper:.2e}"]
        for row in rows
    ]  # fmt: skip
    return Table(["Method", "points", "ours", "±", "paper"], lines)


def _lowest_table(curve: ExtensionCurve) -> Table:
    titles = {line.method: line.title for line in curve.curves}
    ours = next(line for line in curve.curves if line.method == AUTO)
    rows = [
        [titles[best.method], str(best.size), f"{best.error:.4f}", f"{error:.4f}"]
        for best, error in zip(curve.winners, ours.errors, strict=True)
    ]
    return Table(["Lowest", "training points", "error", "PCAExtension()"], rows)
