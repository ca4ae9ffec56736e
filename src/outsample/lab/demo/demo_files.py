"""Files to try the command line with: digits, their map, and digits that are not on it yet."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path

import numpy as np

from outsample.lab import datasets
from outsample.lab.accuracy.maps import tsne
from outsample.report.page import check_writable, write_file

# New digits, and images among them that are none: their pixels are in a random order.
N_NEW, N_STRANGE = 200, 5


def write_demo_files(out_dir: str | os.PathLike[str], n_digits: int | None = None) -> list[Path]:
    """Write ``points.csv``, ``map.csv`` (by t-SNE) and ``new.csv``; return their paths."""
    check_writable(out_dir)
    X, labels = datasets.digits()
    X, labels = X[:n_digits], labels[:n_digits]
    known = len(X) - min(N_NEW, len(X) // 4)
    Y = tsne(X[:known])
    pixels = [f"pixel_{at // 8 + 1}_{at % 8 + 1}" for at in range(X.shape[1])]
    strange = np.random.default_rng(0).permuted(X[known : known + N_STRANGE], axis=1)
    new = np.vstack([X[known:], strange])
    shown = [*map(str, labels[known:]), *["shuffled"] * N_STRANGE]
    names = [f"image_{at + 1}" for at in range(known + len(new))]
    head, folder = ["name", "digit", *pixels], Path(out_dir)
    points = zip(names, labels[:known], X[:known].astype(int), strict=False)
    unknown = zip(names[known:], shown, new.astype(int), strict=True)
    return [
        write_file(folder / "points.csv", _text(head, ((n, d, *x) for n, d, x in points))),
        write_file(
            folder / "map.csv",
            _text(["name", "tsne_1", "tsne_2"], ((n, *y) for n, y in zip(names, Y.tolist()))),  # noqa: B905
        ),
        write_file(folder / "new.csv", _text(head, ((n, d, *x) for n, d, x in unknown))),
    ]


def _text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
