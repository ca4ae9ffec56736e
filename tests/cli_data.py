"""Small tables and models for the tests of the command line."""

from __future__ import annotations

import re

import click
import numpy as np
from click.testing import CliRunner

from outsample.cli import main

CHEAP = ("--weighting", "distance", "--n-neighbors", 8, "--order", 0, "--loss", "squared")


def run(*words, code=0, **options):
    """Run a command and check its exit code; tracebacks are failures."""
    result = CliRunner().invoke(main, [str(word) for word in words], **options)
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    check_named_options(words[0], result.stderr)
    return result


def check_named_options(name, message):
    """Check that the options in a message are options of the command that was run."""
    command = main.commands.get(str(name))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", message))
    if command is not None and not isinstance(command, click.Group):
        options = [flag for option in command.params for flag in (*option.opts, "--help")]
        assert named <= {*options, *(f for o in command.params for f in o.secondary_opts)}, message


def points(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def images(X):
    return np.column_stack([X[:, 0] + 0.1 * X[:, 2] ** 2, X[:, 1]])


def write_csv(path, columns, delimiter=","):
    """Write columns by name, numbers with all digits."""
    cells = [[str(cell) for cell in np.asarray(values).tolist()] for values in columns.values()]
    rows = [delimiter.join(row) for row in zip(*cells, strict=True)]
    path.write_text("\n".join([delimiter.join(columns), *rows]) + "\n", encoding="utf-8")
    return path


def named(X, stem):
    """Return the columns of a table: an id, three features, a label."""
    kinds = np.where(X[:, 0] > 0, "right", "left")
    return {"name": [f"{stem}{at}" for at in range(len(X))], **dict(zip("abc", X.T, strict=True)),
            "kind": kinds}  # fmt: skip


def make_model(folder):
    """Write points, map, new points and a model of them into a folder."""
    X = points(300)
    write_csv(folder / "points.csv", named(X, "p"))
    names = [f"p{at}" for at in range(len(X))]
    write_csv(folder / "map.csv", {"name": names, "u": images(X)[:, 0], "v": images(X)[:, 1]})
    write_csv(folder / "new.csv", named(points(60, seed=1), "q"))
    run("fit", folder / "points.csv", folder / "map.csv", "--id", "name", "--id", "kind",
        "-o", folder / "m.outsample", *CHEAP)  # fmt: skip
    return folder
