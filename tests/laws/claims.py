"""Which estimator claims which law; what it does not claim, with the reason.

`pytest tests/estimators/test_laws.py -k claims -s` prints the table.
"""

from __future__ import annotations

import pytest

from laws.subjects import SUBJECTS

LAWS = {
    "batch": "batch, single and shuffled queries agree bit for bit",
    "chunks": "chunks and threads change nothing, bit for bit",
    "pure": "a query leaves the model bit-identical",
    "fitted": "parameters changed after fit do not matter until fit is called again",
    "failed fit": "a fit that raises leaves the estimator as it was",
    "file": "a model that was saved and loaded answers the same, bit for bit",
    "own place": "a training point gets its own coordinates",
    "copies": "coinciding points get the mean of their images",
    "constant": "a constant map is reproduced",
    "affine": "an affine map is reproduced",
    "quadratic": "a quadratic map is reproduced",
    "shift X": "turning and shifting the points changes nothing",
    "turn X": "turning the points changes nothing",
    "move Y": "turning and shifting the map moves the answer with it",
    "units": "scaling the points changes nothing, scaling the map scales the answer",
    "binary units": "the same for powers of two",
    "row order": "training rows in another order give the same answer, but for rounding",
    "float32": "float32 in, float32 out, near the float64 answer",
    "finite": "finite in, finite out: copies, lines, constant columns, k <= d, all magnitudes",
    "few": "two, three and five training points are enough",
    "refusal": "NaN, infinity, wrong columns or names: a ValueError that says which",
    "place of refusal": "and in which row and column",
    "container": "sparse points of few columns give the answer of dense ones, bit for bit",
    "sparse": "and those of many, but for rounding",
    "indexes": "every exact index gives the same answer, bit for bit",
    "sum": "weights sum to one",
    "sum of copies": "and where points coincide",
    "nearer": "of two neighbours the nearer one weighs more",
    "box": "scalar weights are positive, fall with distance, and sum to one",
    "limit": "the residual tends to its value on a training point",
    "certificate": "the bound is never below the error of a K-Lipschitz map",
    "p range": "p = (1 + #{c >= s}) / (m + 1), from 1 / (m + 1) to 1",
    "p valid": "P(p <= a) <= a, exactly",
}
STATED: set[str] = set()

NO_MAP = "scores, no coordinates"
OWN_MAP = "makes its own map"
SMOOTHS = "fits the map, does not interpolate it"
NO_PLACE = "transform only"
ORDER_0 = "of order 0"
ORDER_1 = "of order 1"
ITS_CHOICE = "depends on what is chosen"
NO_INDEX = "searches no index, or only one"
NO_SCALARS = "weights depend on directions or on one another"
NO_LIMIT = "the limit depends on the direction"
GAUSSIAN_LIMIT = "on a training point the residual is that of other weights"
NO_P_VALUE = "has no p-value"


def everyone(reason, *but):
    return {name: reason for name in SUBJECTS if not {name, SUBJECTS[name].group} & {*but}}


WITHOUT_IMAGES = {"diffusion map": OWN_MAP, "detector": NO_MAP}
WITHOUT_PLACE = {"kernel": NO_PLACE, "diffusion map": NO_PLACE, "detector": NO_MAP}
# A law, and who does not claim it: a name or a group, and the reason.
GAPS: dict[str, dict[str, str]] = {
    "own place": {"kernel": SMOOTHS, "detector": NO_MAP},
    "copies": {"kernel": SMOOTHS, **WITHOUT_IMAGES},
    "constant": WITHOUT_IMAGES,
    "affine": {"defaults": ITS_CHOICE, **everyone(ORDER_0, "polynomial", "defaults")},
    "quadratic": {
        "defaults": ITS_CHOICE, "polynomial": ORDER_1,
        **everyone(ORDER_0, "polynomial", "defaults"),
    },
    "shift X": {"cosine": "a shift changes angles"},
    "move Y": WITHOUT_IMAGES,
    "row order": {
        "multiscale": "the decomposition starts from the first rows",
        "detector split": "the half is chosen by row number",
        "detector split map": "the half is chosen by row number",
    },
    "place of refusal": {
        "sparse": "says which array, not which entry",
        "extended": "says which array, not which entry",
        "extended nystroem": "says which array, not which entry",
    },
    "container": {"sparse": "sparse points of many columns"},
    "sparse": {
        "auto": "chooses among polynomials for dense points only",
        "polynomial": "a polynomial needs coordinates",
        "diffusion": "takes dense points only",
        "blend over all": "takes dense points only",
        "all points": "sparse points get the local solve",
        "approximate": "approximate indexes need coordinates",
        "two levels": "sparse points have another order, and other landmarks",
        "multiscale": "the box of sparse points lies along the columns",
    },
    "indexes": {
        "approximate": "may miss a neighbour among thousands of points",
        "kernel": NO_INDEX, "diffusion map": NO_INDEX, "detector": NO_INDEX, "sparse": NO_INDEX,
    },
    "sum": WITHOUT_IMAGES,
    "sum of copies": {
        **WITHOUT_IMAGES,
        "process linear": "copies make a covariance without nugget singular",
        "polynomial": "copies of one point span no plane, and large terms do not cancel",
    },
    "nearer": WITHOUT_IMAGES,
    "box": everyone(NO_SCALARS, "scalar"),
    "limit": {
        **WITHOUT_PLACE, "defaults": ITS_CHOICE,
        "polynomial": NO_LIMIT, "correlated": NO_LIMIT, "all points": NO_LIMIT, "blend": NO_LIMIT,
        "two levels": NO_LIMIT,
        "neighbor loss": "a hair beside a training point the loss decides, not its image",
        "gaussian distance": GAUSSIAN_LIMIT, "gaussian median": GAUSSIAN_LIMIT,
    },
    "certificate": WITHOUT_PLACE,
    "p range": everyone(NO_P_VALUE, "detector", "detector with map"),
    "p valid": {
        "detector": "leave-one-out p-values are approximate",
        "detector map": "leave-one-out p-values are approximate",
        **everyone(NO_P_VALUE, "detector", "detector with map"),
    },
}  # fmt: skip
MOST_COPIES = 5
FARTHEST = {"detector": 1e250, "detector with map": 1e250}
# Laws that are claimed of some arrays only, by all.
LIMITS = {
    "copies": f"up to {MOST_COPIES} of a point; of more than the neighbours, row order decides",
    "row order": "no ties at the last neighbour: row order decides",
    "turn X": "no ties at the last neighbour: rounding decides",
    "finite": "detectors up to 1e250 away from copies of a point, the others up to 1e300",
    "sparse": "fit and query both sparse: dense beside sparse is not checked",
}
# A name counts before its group, so that one of a group can claim what the others do not.
CLAIMS = {
    ("quadratic", "order 2"), ("p valid", "detector split"), ("sparse", "two levels analytic"),
}  # fmt: skip


def gap(law, name):
    """Why the subject does not claim the law; None if it does."""
    if (law, name) in CLAIMS:
        return None
    reasons = GAPS.get(law, {})
    return reasons.get(name, reasons.get(SUBJECTS[name].group))


def law(which, *stricter):
    """Run a test over all who claim the law; it tries the stricter ones on those who claim them."""
    STATED.update([which, *stricter])
    return pytest.mark.parametrize("name", [name for name in SUBJECTS if gap(which, name) is None])


def table():
    """Subjects by laws: a dot for a claim, a number for a gap, and the reasons by number."""
    reasons = list(dict.fromkeys(r for gaps in GAPS.values() for r in gaps.values()))
    width = max(map(len, SUBJECTS)) + 1
    lines = [f"{i:>{width}}: {one}" for i, one in enumerate(LAWS.values(), 1)]
    lines += ["", " " * width + "".join(f"{i:4}" for i, _ in enumerate(LAWS, 1))]
    for name in SUBJECTS:
        marks = (gap(one, name) for one in LAWS)
        cells = ("." if mark is None else chr(ord("a") + reasons.index(mark)) for mark in marks)
        lines.append(f"{name:<{width}}" + "".join(f"{cell:>4}" for cell in cells))
    lines += ["", *(f"{chr(ord('a') + i)}: {r}" for i, r in enumerate(reasons))]
    return "\n".join([*lines, "", *(f"{LAWS[one]}: {limit}" for one, limit in LIMITS.items())])
