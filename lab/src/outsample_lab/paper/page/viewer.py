"""Interactive 3-D pictures on a page: the viewer's script and its points.

Our own viewer instead of Plotly: 10 KB of script instead of 4.7 MB and no further dependency.
Without scripts, and on paper, the page shows static pictures.
"""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from outsample.report.page import Picture, Section
from outsample_lab.plots.scenes import Scene, scene_data, scene_picture

STYLE = """
figure img { max-width: 38rem; } figcaption { white-space: pre-line; }
th, td, td:first-child { white-space: normal; min-width: 3.4rem;
  padding-inline: .45rem; }
img.still { display: none !important; }
.scene { padding: .6rem .6rem 0; width: 100%; max-width: 40rem; margin: 0 auto; color: #1f2933; }
.scene > canvas { display: block; width: 100%; aspect-ratio: 6 / 5; cursor: grab;
  touch-action: pan-y; }
.scene > canvas:active { cursor: grabbing; }
.scene > canvas:focus-visible { outline: 2px solid #0072b2; outline-offset: -2px; }
.scene-title { margin: .2rem 0 0; text-align: center; font-weight: 600; font-size: .95rem;
  line-height: 1.35; max-width: none; }
.scene-legend { display: flex; flex-wrap: wrap; gap: .35rem; justify-content: center; }
.scene-legend button { display: inline-flex; align-items: center; gap: .3rem; cursor: pointer;
  font: inherit; font-size: .8rem; line-height: 1.3; color: #1f2933; background: #fff;
  border: 1px solid #d5dae0; border-radius: 1rem; padding: .25rem .7rem .25rem .45rem; }
.scene-legend button[aria-pressed=false] { opacity: .45; text-decoration: line-through; }
.scene-legend canvas { width: 12px; height: 12px; }
.scene-hint { margin: .5rem 0 .6rem; text-align: center; color: #55606c; font-size: .76rem;
  line-height: 1.4; max-width: none; }
@media print { .scene { display: none; } img.still { display: block !important; }
  figure img { max-width: 13cm; } .pictures { grid-template-columns: 1fr 1fr; }
  .pictures > figure:only-child { grid-column: 1 / -1; } }
"""


class Part(NamedTuple):
    """A section of the page, and its interactive pictures."""

    section: Section
    # By the alternative text of the still picture.
    scenes: dict[str, Scene] = {}  # noqa: RUF012


def turning_part(
    heading: str, words: Sequence[str], scenes: dict[str, Scene], captions: Sequence[str]
) -> Part:
    """Return a section with static pictures of scenes, by alternative text."""
    drawn = zip(scenes.items(), captions, strict=True)
    pictures = [Picture(scene_picture(scene), alt, caption) for (alt, scene), caption in drawn]
    return Part(Section(heading, words, pictures=pictures), scenes)


def with_viewer(html: str, parts: Sequence[Part]) -> str:
    """Return a page of `build_page` with interactive scenes.

    Adds a style, the points and the script; text in the points is escaped, so that it cannot close
    the script element.
    """
    scenes = {alt: scene_data(scene) for part in parts for alt, scene in part.scenes.items()}
    text = json.dumps(scenes, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    points = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    script = files("outsample_lab.paper.page").joinpath("scene.js").read_text("utf-8")
    head, _, body = html.partition("</head>")
    body, _, end = body.rpartition("</body>")
    return (
        f"{head}<style>{STYLE}</style></head>{body}"
        f'<script type="application/json" id="scenes">{points}</script>\n'
        f"<script>\n{script}</script>\n</body>{end}"
    )
