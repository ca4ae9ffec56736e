"""The diffusion map of Fig. 7.3 to 7.6.

The paper gives neither its bandwidth nor its number of neighbours. These were chosen on the day
that is shown, 20 July 1998, so that the map resembles that of the paper: a horseshoe, and the loud
attacks outside it. The defaults of `DiffusionMaps` also give the horseshoe, but place the attacks
near it, because the bandwidth of an isolated point is as long as its distance.
"""

import numpy as np
from numpy.typing import NDArray

from outsample import DiffusionMaps

N_COMPONENTS = 5
BANDWIDTH = 17.0  # of standardised features
NEIGHBORS = 140  # including duplicates of a minute


def traffic_map(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coordinates (n, 5) of minutes, standardised (n, 14)."""
    k = min(NEIGHBORS, len(X) - 1)
    maps = DiffusionMaps(n_components=N_COMPONENTS, bandwidth=BANDWIDTH, n_neighbors=k)
    return np.asarray(maps.fit_transform(X), dtype=np.float64)
