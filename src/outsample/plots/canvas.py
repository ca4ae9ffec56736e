"""Common parts of all pictures: fonts, figures, legends, image files."""

from importlib.util import find_spec
from io import BytesIO
from typing import Any

from outsample.plots.colours import FAINT, INK, PALE

SETTINGS = {
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so pictures are the same everywhere
    "text.color": INK,
    "axes.edgecolor": PALE,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": INK,
    "svg.hashsalt": "outsample",  # equal data give equal bytes
}


def legend(
    figure: Any, *entries: tuple[str, ...], left: float = 0.0, columns: int | None = None
) -> None:
    """Draw a legend at the lower edge; an entry is (label, colour, marker, edge colour)."""
    from matplotlib.lines import Line2D

    def handle(label: str, colour: str, marker: str = "o", edge: str = "") -> Any:
        style: dict[str, Any] = {
            "marker": marker, "color": colour, "markeredgecolor": edge or colour
        }  # fmt: skip
        return Line2D([], [], linestyle="", markersize=6, label=label, **style)

    handles = [handle(*entry) for entry in entries]
    figure.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(left, 0.0, 1 - left, 1),
        frameon=False, ncols=columns or len(handles), handletextpad=0.1, columnspacing=1.2,
        fontsize=9,
    )  # fmt: skip


def can_draw() -> bool:
    """Return True if matplotlib is installed."""
    return find_spec("matplotlib") is not None


def settings() -> Any:
    """Return a context in which matplotlib uses our fonts and colours."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install outsample[plots]"
        ) from error
    return rc_context(SETTINGS)


def new_figure(width: float, height: float, title: str = "") -> Any:
    """Return a figure, sized in inches, without a window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    figure.text(0.5, 1 - 0.24 / height, title, ha="center", va="center", fontsize=12)
    return figure


def svg(figure: Any) -> bytes:
    """Return the figure as an SVG file; without a date, so that equal data give equal files."""
    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def png(figure: Any, dpi: int = 170) -> bytes:
    """Return the figure as a PNG file of at most 256 colours."""
    # A palette makes the file three times smaller, with no visible difference.
    from PIL import Image

    full, reduced = BytesIO(), BytesIO()
    figure.savefig(full, format="png", dpi=dpi)
    with Image.open(full) as picture:
        palette_image = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    palette_image.save(reduced, format="png", optimize=True)
    return reduced.getvalue()
