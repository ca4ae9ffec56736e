"""Files to try the command line with: digits, their t-SNE map, and new digits."""

import csv
import os
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import numpy as np

from outsample.demo.digits import load_digits, tsne
from outsample.report.page import check_writable, write_file

N_NEW_DIGITS, N_ANOMALIES = 200, 5  # the anomalies are digits with shuffled pixels


def write_demo_files(out_dir: str | os.PathLike[str], n_digits: int | None = None) -> list[Path]:
    """Write ``points.csv``, ``map.csv`` (t-SNE) and ``new.csv``; return their paths."""
    check_writable(out_dir)
    X, labels = load_digits()
    X, labels = X[:n_digits], labels[:n_digits]
    n_training = len(X) - min(N_NEW_DIGITS, len(X) // 4)
    Y = tsne(X[:n_training])
    pixels = [f"pixel_{at // 8 + 1}_{at % 8 + 1}" for at in range(X.shape[1])]
    anomalies = np.random.default_rng(0).permuted(X[n_training : n_training + N_ANOMALIES], axis=1)
    rows = np.vstack([X, anomalies]).astype(int)
    digit_column = [*map(str, labels), *["shuffled"] * N_ANOMALIES]
    names = [f"image_{at + 1}" for at in range(len(rows))]
    lines = [(n, d, *x) for n, d, x in zip(names, digit_column, rows, strict=True)]
    header, folder = ["name", "digit", *pixels], Path(out_dir)
    map_lines = [(name, *y) for name, y in zip(names[:n_training], Y.tolist(), strict=True)]
    return [
        write_file(folder / "points.csv", _csv_text(header, lines[:n_training])),
        write_file(folder / "map.csv", _csv_text(["name", "tsne_1", "tsne_2"], map_lines)),
        write_file(folder / "new.csv", _csv_text(header, lines[n_training:])),
    ]


def _csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
