"""`outsample fit`: a model file from points and their map."""

from __future__ import annotations

import os
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from outsample.cli import options
from outsample.cli.exit_codes import plain_errors, reading
from outsample.cli.showing import format_bytes, show_json, waiting
from outsample.files.atomic import check_target

if TYPE_CHECKING:
    from outsample.cli.training_data import TrainingData

WEIGHTINGS = (
    "auto", "distance", "tangent", "local_tangent", "split_tangent", "correlated", "diffusion",
)  # fmt: skip
POSITIVE = click.FloatRange(0, min_open=True)
INDEXES = ("auto", "kd_tree", "brute", "approximate")
# Type, default and help of the parameters of PCAExtension, under their own names.
PARAMETERS: dict[str, tuple[click.ParamType, Any, str]] = {
    "n_neighbors": (options.OrAuto(click.IntRange(1)), "auto", "Number of neighbours."),
    "radius": (POSITIVE, None, "Use all training points within it (the paper's epsilon)."),
    "weighting": (click.Choice(WEIGHTINGS), "auto", "Weights of the neighbours."),
    "order": (options.OrAuto(click.IntRange(0, 2)), "auto", "Degree, 0 to 2."),
    "loss": (click.Choice(["auto", "squared", "absolute"]), "auto", "Loss."),
    "curvature": (options.OrAuto(POSITIVE), "auto", "The paper's c."),
    "tangent_radius": (POSITIVE, None, "Radius of tangents (the paper's eps1)."),
    "tangent_dim": (options.OrAuto(click.IntRange(1)), "auto", "Tangent dimension."),
    "lipschitz": (options.OrAuto(click.FloatRange(0)), "auto", "K of the bounds."),
    "level": (click.FloatRange(0.5, 0.99), 0.9, "Share of true positions within the error bar."),
    "metric": (click.Choice(["euclidean", "cosine"]), "euclidean", "Distance between points."),
    "index": (click.Choice(INDEXES), "auto", "Search; approximate may need outsample[ann]."),
}


def _parameters(command: Any) -> Any:
    for name, (kind, default, text) in reversed(PARAMETERS.items()):
        flag, has_default = f"--{name.replace('_', '-')}", default is not None
        option = click.option(flag, type=kind, default=default, show_default=has_default, help=text)
        command = option(command)
    return command


@click.command(
    short_help="Fit a model to points and their map; write a model file.",
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
    help="Also compute the map; umap needs outsample[umap].",
)
@click.option(
    "--n-components", type=click.IntRange(1), default=2, show_default=True,
    help="Number of coordinates of --embed.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
    help="Seed of --embed, and of --calibration split.",
)  # fmt: skip
@options.table_options
@click.option(
    "--novelty/--no-novelty", default=True, show_default=True,
    help="Also fit a detector, for abnormality and p-values.",
)  # fmt: skip
@click.option(
    "--calibration", type=click.Choice(["leave-one-out", "split"]), default="leave-one-out",
    show_default=True, help="Calibration of p-values; split makes them exact.",
)  # fmt: skip
@_parameters
@options.jobs("Threads; -1 for all cores.")
@options.as_json()
def fit(points: str, map_: str | None, out: str, as_json: bool, **settings: Any) -> None:
    """Fit a model to POINTS and their map, and write it to one file.

    POINTS and MAP have one row per point: .csv, .tsv, .txt (also .gz), .parquet, .arrow, .feather,
    .npy, .npz (arrays X and Y) or .h5ad; POINTS also - for text in a pipe. MAP may be omitted if
    POINTS contains it: in an .npz or .h5ad file, or in the columns named by --map-columns.
    """
    with plain_errors():
        from outsample.cli.embeddings import embed
        from outsample.cli.training_data import TableOptions, read_training
        from outsample.files.model_file import save
        from outsample.placed_frame import map_names_for

        check_target(out)  # now, not after a long fit
        start_time = perf_counter()
        values = {name: settings[name] for name in TableOptions._fields if name in settings}
        with reading():
            data = read_training(points, map_, TableOptions(**values, can_embed=True))
        if data.Y is None:
            method = settings["embed"]
            with waiting(f"computing a map by {method}", silent=as_json):
                Y = embed(method, data.X, settings["n_components"], settings["seed"])
            names = [name.replace("map", method) for name in map_names_for(Y.shape[1])]
            data = data._replace(Y=Y, map_names=names)
        with waiting("fitting", silent=as_json):
            model = _fitted(data, settings)
        save(model, out, columns=data.columns, map_names=data.map_names)
        extension = getattr(model, "extension_", model)
        summary = {
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
            "seconds": round(perf_counter() - start_time, 3),
            "file_bytes": os.path.getsize(out),
        }
        if as_json:
            show_json(summary)
            return
        click.echo(
            f"Fitted to {len(data.X):,} points with {data.X.shape[1]} features and a map of "
            f"{len(data.map_names)} coordinates in {summary['seconds']:.1f} s.\n"
            f"Leave-one-out error: {extension.loo_error_:.2%} of the size of the map.\n"
            f"Wrote {out} ({format_bytes(summary['file_bytes'])})"
        )


def _fitted(data: TrainingData, settings: dict[str, Any]) -> Any:
    import numpy as np

    from outsample import NoveltyDetector, PCAExtension

    n_jobs = None if settings["jobs"] == 1 else settings["jobs"]
    model: Any = PCAExtension(**{name: settings[name] for name in PARAMETERS}, n_jobs=n_jobs)
    if settings["novelty"]:
        seed, calibration = settings["seed"], settings["calibration"]
        model = NoveltyDetector(model, calibration=calibration, random_state=seed, n_jobs=n_jobs)
    model.fit(data.X, data.Y)
    if data.feature_names is not None:  # as after fitting a data frame
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)
    return model
