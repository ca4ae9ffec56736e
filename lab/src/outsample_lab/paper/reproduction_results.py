"""The results of `outsample reproduce`, as in its ``results.json``."""

from typing import Any, NamedTuple

from outsample_lab.paper.complexity import Complexity
from outsample_lab.paper.extension_curve import ExtensionCurve
from outsample_lab.paper.sphere_orders import SphereOrders
from outsample_lab.paper.traffic_day import FeatureCheck, TrafficDay


class Data(NamedTuple):
    """The traffic of Example II."""

    simulated: bool
    notice: str | None  # Statement for the page, None for recorded traffic
    not_public: str  # Statement on the features of the paper
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
    seconds: float  # Of all experiments
    data: Data
    sphere: SphereOrders
    extension_curve: ExtensionCurve
    traffic_day: TrafficDay
    complexity: Complexity
