"""Pictures of maps, placements and errors, as the bytes of a PNG or SVG file.

Needs matplotlib, and no other module does. Figures are built without pyplot, so no display is
needed and no state is left behind. Arrays go in; the module knows nothing of experiments.
Where there are more classes than safe colours, the classes are also labelled in the picture.
"""

from outsample.plots.error_lines import comparison
from outsample.plots.placed_maps import error_map, hero, placed_map

__all__ = ["comparison", "error_map", "hero", "placed_map"]
