"""Pictures of maps, placements and errors, as the bytes of a PNG or SVG file.

Only this package imports matplotlib. Figures are built without pyplot, so that no display is
needed and no global state changes.
"""

from outsample.plots.error_lines import comparison
from outsample.plots.placed_maps import error_map, hero, placed_map

__all__ = ["comparison", "error_map", "hero", "placed_map"]
