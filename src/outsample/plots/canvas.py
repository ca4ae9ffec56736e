"""Ground of every picture: fonts, figures without a window, legends, and their files."""

from importlib.util import find_spec
from io import BytesIO
from typing import Any

from outsample.plots.colours import FAINT, INK, PALE

SETTINGS = {
    "font.size": 10,
    "font.family": "DejaVu Sans",  # comes with matplotlib, so pictures are alike everywhere
    "text.color": INK,
    "axes.edgecolor": PALE,
    "axes.labelcolor": FAINT,
    "xtick.color": FAINT,
    "ytick.color": INK,
    "svg.hashsalt": "outsample",  # equal data, equal bytes
}


def legend(
    figure: Any, *entries: tuple[str, ...], left: float = 0.0, columns: int | None = None
) -> None:
    """Draw marks and words along the lower edge; an entry is word, colour, marker, rim's colour."""
    from matplotlib.lines import Line2D

    def mark(word: str, colour: str, marker: str = "o", rim: str = "") -> Any:
        look: dict[str, Any] = {"marker": marker, "color": colour, "markeredgecolor": rim or colour}
        return Line2D([], [], linestyle="", markersize=6, label=word, **look)

    marks = [mark(*entry) for entry in entries]
    figure.legend(
        handles=marks, loc="lower center", bbox_to_anchor=(left, 0.0, 1 - left, 1), frameon=False,
        ncols=columns or len(marks), handletextpad=0.1, columnspacing=1.2, fontsize=9,
    )  # fmt: skip


def can_draw() -> bool:
    """Tell whether there is matplotlib to draw with."""
    return find_spec("matplotlib") is not None


def settings() -> Any:
    """Apply our fonts and colours for the time of one picture."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install outsample[plots]"
        ) from error
    return rc_context(SETTINGS)


def new_figure(width: float, height: float, title: str = "") -> Any:
    """Return a figure, sized in inches, that belongs to no window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    figure.text(0.5, 1 - 0.24 / height, title, ha="center", va="center", fontsize=12)
    return figure


def svg(figure: Any) -> bytes:
    """Return the figure as an SVG file, without the date: equal data give equal files."""
    stream = BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def png(figure: Any, dpi: int = 170) -> bytes:
    """Return the figure as a PNG file of at most 256 colours."""
    # A palette is not seen where a few colours stand on white, and makes the file three times
    # smaller.
    from PIL import Image

    stream, small = BytesIO(), BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)
    with Image.open(stream) as picture:
        flat = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    flat.save(small, format="png", optimize=True)
    return small.getvalue()
