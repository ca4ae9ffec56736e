"""The results of `outsample reproduce`, as in its ``results.json``."""

from typing import Any, NamedTuple

from outsample_lab.paper.complexity import Complexity
from outsample_lab.paper.extension_curve import ExtensionCurve
from outsample_lab.paper.sphere_orders import SphereOrders
from outsample_lab.paper.traffic_day import FeatureCheck, TrafficDay


class Data(NamedTuple):
    """The traffic of Example II."""

    simulated: bool
    notice: str | None  # Words that say so, None for recorded traffic
    not_public: str  # Why the paper's own features cannot be had
    source: str
    features: FeatureCheck
    map_day: str
    new_day: str


class Results(NamedTuple):
    """Results of Section 7, and of the run."""

    paper: str  # What is reproduced
    size: str  # ``"full"`` or ``"quick"``
    parameters: dict[str, Any]  # Settings of any kind, nested ones by experiment
    seeds: dict[str, Any]
    versions: dict[str, str]
    seconds: float  # All experiments took so long
    data: Data
    sphere: SphereOrders
    extension_curve: ExtensionCurve
    traffic_day: TrafficDay
    complexity: Complexity
