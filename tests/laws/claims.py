"""The laws, and which estimators do not claim a law, with the reason.

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
    "failed fit": "a fit that raises leaves the estimator unchanged",
    "file": "a saved and loaded model returns bit-identical results",
    "own coordinates": "a training point gets its own coordinates",
    "duplicates": "duplicate points get the mean of their coordinates",
    "constant": "a constant map is reproduced",
    "affine": "an affine map is reproduced",
    "quadratic": "a quadratic map is reproduced",
    "shift X": "rotating and shifting the points changes nothing",
    "rotate X": "rotating the points changes nothing",
    "move Y": "rotating and shifting the map moves the result with it",
    "units": "scaling the points changes nothing, scaling the map scales the result",
    "binary units": "the same for powers of two",
    "row order": "training rows in another order give the same result, up to rounding",
    "float32": "float32 in, float32 out, close to the float64 result",
    "finite": "finite in, finite out: duplicates, lines, constant columns, k <= d, all magnitudes",
    "few": "two, three and five training points are enough",
    "invalid input": "NaN, infinity, wrong columns or names raise a ValueError that names them",
    "location of invalid input": "the message contains the row and column",
    "container": "sparse points with few columns give the results of dense points, bit for bit",
    "sparse": "sparse points with many columns give the results of dense points, up to rounding",
    "indexes": "all exact indexes give bit-identical results",
    "sum": "weights sum to one",
    "sum of duplicates": "weights sum to one among duplicate points",
    "nearer": "of two neighbours, the nearer one has the larger weight",
    "box": "scalar weights are positive, fall with distance, and sum to one",
    "limit": "the residual tends to its value on a training point",
    "certificate": "the bound is never below the error of a K-Lipschitz map",
    "p range": "p = (1 + #{c >= s}) / (m + 1), from 1 / (m + 1) to 1",
    "p valid": "P(p <= a) <= a, exactly",
}
STATED: set[str] = set()

NO_MAP = "has scores but no coordinates"
OWN_MAP = "computes its own map"
SMOOTHS = "fits the map, does not interpolate it"
NO_PLACE = "transform only"
ORDER_0 = "has order 0"
ORDER_1 = "has order 1"
DEPENDS_ON_SELECTION = "depends on the selected model"
NO_INDEX = "uses no index, or has no choice of one"
NO_SCALARS = "weights depend on directions or on one another"
NO_LIMIT = "the limit depends on the direction"
GAUSSIAN_LIMIT = "on a training point the residual has other weights"
NO_P_VALUE = "has no p-value"


def all_subjects(reason, *except_names):
    return {name: reason for name in SUBJECTS if not {name, SUBJECTS[name].group} & {*except_names}}


WITHOUT_IMAGES = {"diffusion map": OWN_MAP, "detector": NO_MAP}
WITHOUT_PLACE = {"kernel": NO_PLACE, "diffusion map": NO_PLACE, "detector": NO_MAP}
# For each law: the subjects or groups that do not claim it, and the reason.
GAPS: dict[str, dict[str, str]] = {
    "own coordinates": {"kernel": SMOOTHS, "detector": NO_MAP},
    "duplicates": {"kernel": SMOOTHS, **WITHOUT_IMAGES},
    "constant": WITHOUT_IMAGES,
    "affine": {"defaults": DEPENDS_ON_SELECTION, **all_subjects(ORDER_0, "polynomial", "defaults")},
    "quadratic": {
        "defaults": DEPENDS_ON_SELECTION, "polynomial": ORDER_1,
        **all_subjects(ORDER_0, "polynomial", "defaults"),
    },
    "shift X": {"cosine": "a shift changes angles"},
    "move Y": WITHOUT_IMAGES,
    "row order": {
        "multiscale": "the decomposition starts from the first rows",
        "detector split": "the half is chosen by row number",
        "detector split map": "the half is chosen by row number",
    },
    "location of invalid input": {
        "sparse": "names the array, not the entry",
        "extended": "names the array, not the entry",
        "extended nystroem": "names the array, not the entry",
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
    "sum of duplicates": {
        **WITHOUT_IMAGES,
        "process linear": "duplicates make a covariance without nugget singular",
        "polynomial": "duplicates of one point span no plane, and large terms do not cancel",
    },
    "nearer": WITHOUT_IMAGES,
    "box": all_subjects(NO_SCALARS, "scalar"),
    "limit": {
        **WITHOUT_PLACE, "defaults": DEPENDS_ON_SELECTION,
        "polynomial": NO_LIMIT, "correlated": NO_LIMIT, "all points": NO_LIMIT, "blend": NO_LIMIT,
        "two levels": NO_LIMIT,
        "neighbor loss": "next to a training point the loss determines the position",
        "gaussian distance": GAUSSIAN_LIMIT, "gaussian median": GAUSSIAN_LIMIT,
    },
    "certificate": WITHOUT_PLACE,
    "p range": all_subjects(NO_P_VALUE, "detector", "detector with map"),
    "p valid": {
        "detector": "leave-one-out p-values are approximate",
        "detector map": "leave-one-out p-values are approximate",
        **all_subjects(NO_P_VALUE, "detector", "detector with map"),
    },
}  # fmt: skip
MAX_DUPLICATES = 5
MAX_QUERY_SIZE = {"detector": 1e250, "detector with map": 1e250}
# Restrictions of the arrays that apply to all subjects.
LIMITS = {
    "duplicates": f"at most {MAX_DUPLICATES} of a point: above n_neighbors, row order matters",
    "row order": "no ties at the last neighbour, where row order matters",
    "rotate X": "no ties at the last neighbour, where rounding matters",
    "finite": "detectors up to a distance of 1e250 from duplicates, others up to 1e300",
    "sparse": "fit and query both sparse; mixed containers are not checked",
}
# Laws that a subject claims although its group does not.
CLAIMS = {
    ("quadratic", "order 2"), ("p valid", "detector split"), ("sparse", "two levels analytic"),
}  # fmt: skip


def gap(law, name):
    """Return why the subject does not claim the law; None if it does."""
    if (law, name) in CLAIMS:
        return None
    reasons = GAPS.get(law, {})
    return reasons.get(name, reasons.get(SUBJECTS[name].group))


def law(law_name, *stricter):
    """Parametrise a test by the subjects that claim the law; it also states ``stricter`` laws."""
    STATED.update([law_name, *stricter])
    names = [name for name in SUBJECTS if gap(law_name, name) is None]
    return pytest.mark.parametrize("name", names)


def table():
    """Return a table of subjects by laws: a dot for a claim, a letter for the reason of a gap."""
    reasons = list(dict.fromkeys(r for gaps in GAPS.values() for r in gaps.values()))
    width = max(map(len, SUBJECTS)) + 1
    lines = [f"{i:>{width}}: {text}" for i, text in enumerate(LAWS.values(), 1)]
    lines += ["", " " * width + "".join(f"{i:4}" for i, _ in enumerate(LAWS, 1))]
    for name in SUBJECTS:
        marks = (gap(law_name, name) for law_name in LAWS)
        cells = ("." if mark is None else chr(ord("a") + reasons.index(mark)) for mark in marks)
        lines.append(f"{name:<{width}}" + "".join(f"{cell:>4}" for cell in cells))
    lines += ["", *(f"{chr(ord('a') + i)}: {r}" for i, r in enumerate(reasons))]
    limits = (f"{LAWS[law_name]}: {limit}" for law_name, limit in LIMITS.items())
    return "\n".join([*lines, "", *limits])
