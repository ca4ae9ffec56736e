"""Pictures of maps, placements and errors, as the bytes of a PNG or SVG file.

Needs matplotlib, and no other module does. Figures are built without pyplot, so no display is
needed and no state is left behind. Arrays go in; the module knows nothing of experiments.
Where there are more classes than safe colours, the classes are also labelled in the picture.
"""

from outsample.plots.dots import AreaGroup, area_chart, comparison, error_chart, ratio_chart
from outsample.plots.placed_maps import error_map, hero, placed_map, placed_sphere
from outsample.plots.targets import target_chart

__all__ = [
    "AreaGroup",
    "area_chart",
    "comparison",
    "error_chart",
    "error_map",
    "hero",
    "placed_map",
    "placed_sphere",
    "ratio_chart",
    "target_chart",
]
