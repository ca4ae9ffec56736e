"""`outsample fit`: from points and a map to a model file."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import plain_errors, reading
from outsample.cli.showing import show_json, waiting
from outsample.files.atomic import check_target

if TYPE_CHECKING:
    from outsample.cli.training_data import TrainingData

WEIGHTINGS = (
    "auto", "distance", "tangent", "local_tangent", "split_tangent", "correlated", "diffusion",
)  # fmt: skip
POSITIVE = click.FloatRange(0, min_open=True)
OR_AUTO = {"default": "auto", "show_default": True}
# The parameters of PCAExtension, by their names there.
PARAMETERS: list[tuple[str, dict[str, Any], str]] = [
    ("n_neighbors", {"type": options.OrAuto(click.IntRange(1))} | OR_AUTO, "Neighbours to use."),
    ("radius", {"type": POSITIVE}, "Use all training points within it (the paper's epsilon)."),
    ("weighting", {"type": click.Choice(WEIGHTINGS)} | OR_AUTO, "Weights of the neighbours."),
    ("order", {"type": options.OrAuto(click.IntRange(0, 2))} | OR_AUTO, "Degree, 0 to 2."),
    ("loss", {"type": click.Choice(["auto", "squared", "absolute"])} | OR_AUTO, "Loss."),
    ("curvature", {"type": options.OrAuto(POSITIVE)} | OR_AUTO, "The paper's c."),
    ("tangent_radius", {"type": POSITIVE}, "Radius of tangents (the paper's eps1)."),
    ("tangent_dim", {"type": options.OrAuto(click.IntRange(1))} | OR_AUTO, "Tangent dimension."),
    ("lipschitz", {"type": options.OrAuto(click.FloatRange(0))} | OR_AUTO, "K of the bounds."),
    (
        "level",
        {"type": click.FloatRange(0.5, 0.99), "default": 0.9, "show_default": True},
        "Share of true places within the error bar.",
    ),
    (
        "metric",
        {"type": click.Choice(["euclidean", "cosine"]), "default": "euclidean"}
        | {"show_default": True},
        "Distance between points.",
    ),
    (
        "index",
        {"type": click.Choice(["auto", "kd_tree", "brute", "approximate"])} | OR_AUTO,
        "How neighbours are searched; approximate may need outsample[ann].",
    ),
]


def _parameters(command: Any) -> Any:
    for name, settings, words in reversed(PARAMETERS):
        command = click.option(f"--{name.replace('_', '-')}", **settings, help=words)(command)
    return command


@click.command(
    short_help="Learn from points and their map; write a model file.",
    epilog=options.example(
        "outsample fit points.csv map.csv --id name -o model.outsample",
        "outsample fit points.csv --embed tsne -o model.outsample",
    ),
)
@click.argument("points", type=options.InputFile())
@click.argument("map_", metavar="[MAP]", required=False, type=options.InputFile())
@click.option(
    "-o", "--out", required=True, type=click.Path(dir_okay=False), help="Model file to write."
)
@click.option(
    "--embed",
    type=click.Choice(["tsne", "umap", "diffusion", "isomap"]),
    help="Make the map too; umap needs outsample[umap].",
)
@click.option(
    "--n-components", type=click.IntRange(1), default=2, show_default=True,
    help="Coordinates of the map that --embed makes.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
    help="Seed of --embed, and of --calibration split.",
)  # fmt: skip
@options.table_options
@click.option(
    "--novelty/--no-novelty", default=True, show_default=True,
    help="Also learn what is normal, for abnormality and p-values.",
)  # fmt: skip
@click.option(
    "--calibration", type=click.Choice(["leave-one-out", "split"]), default="leave-one-out",
    show_default=True, help="Where p-values come from; split makes them exact.",
)  # fmt: skip
@_parameters
@options.jobs("Threads; -1 for all cores.")
@options.as_json()
def fit(points: str, map_: str | None, out: str, as_json: bool, **given: Any) -> None:
    """Learn to place new points on the map of POINTS, and write all of it to one file.

    POINTS and MAP have one row a point: .csv, .tsv, .txt (also .gz), .parquet, .arrow, .feather,
    .npy, .npz (arrays X and Y) or .h5ad; POINTS also - for text in a pipe. MAP may be left out
    where POINTS has it too: in an .npz or .h5ad file, or in the columns named by --map-columns.
    """
    with plain_errors():
        from outsample.cli.embeddings import embed
        from outsample.cli.training_data import Choice, read_training
        from outsample.files.model_file import save

        check_target(out)  # now, not after a long fit
        begin = perf_counter()
        named = {name: given[name] for name in Choice._fields if name in given}
        choice = Choice(**named, can_embed=True)
        with reading():
            data = read_training(points, map_, choice)
        if data.Y is None:
            with waiting(f"making a map by {choice.embed}", silent=as_json):
                Y = embed(given["embed"], data.X, given["n_components"], given["seed"])
            names = [f"{choice.embed}_{at + 1}" for at in range(Y.shape[1])]
            data = data._replace(Y=Y, map_names=names)
        with waiting("learning", silent=as_json):
            model = _fitted(data, given)
        save(model, out, columns=data.columns, map_names=data.map_names)
        told = _told(model, data, out, perf_counter() - begin)
        if as_json:
            show_json(told)
        else:
            click.echo(_sentences(told))


def _fitted(data: TrainingData, given: dict[str, Any]) -> Any:
    import numpy as np

    from outsample import NoveltyDetector, PCAExtension

    jobs = None if given["jobs"] == 1 else given["jobs"]
    model: Any = PCAExtension(**{name: given[name] for name, *_ in PARAMETERS}, n_jobs=jobs)
    if given["novelty"]:
        seed, calibration = given["seed"], given["calibration"]
        model = NoveltyDetector(model, calibration=calibration, random_state=seed, n_jobs=jobs)
    model.fit(data.X, data.Y)
    if data.feature_names is not None:  # as after fitting a data frame
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    return model


def _told(model: Any, data: TrainingData, out: str, seconds: float) -> dict[str, Any]:
    extension = getattr(model, "extension_", model)
    assert data.Y is not None
    return {
        "model": out,
        "class_name": type(model).__name__,
        "n_points": len(data.X),
        "n_features": data.X.shape[1],
        "feature_names": data.feature_names,
        "map_names": data.map_names,
        "columns": list(data.columns),
        "loo_error": extension.loo_error_,
        "weighting": str(extension.weighting_),
        "n_neighbors": extension.n_neighbors_,
        "seconds": round(seconds, 3),
        "file_bytes": os.path.getsize(out),
    }


def _sentences(told: dict[str, Any]) -> str:
    from outsample.cli.showing import in_bytes

    return (
        f"Learnt from {told['n_points']:,} points with {told['n_features']} features and a map of "
        f"{len(told['map_names'])} coordinates in {told['seconds']:.1f} s.\n"
        f"Leave-one-out error: {told['loo_error']:.2%} of the size of the map.\n"
        f"Wrote {told['model']} ({in_bytes(told['file_bytes'])})"
    )
