"""Fitting in one step: a fit that raises leaves the estimator as it was."""

from __future__ import annotations

from copy import copy
from typing import Any


def fit_in_one_step(estimator: Any, *data: Any) -> Any:
    """Run ``_fit`` on an unfitted copy, take over its state in one assignment, return its result.

    Fitted attributes are those with a trailing underscore, as in scikit-learn. None of an earlier
    fit survives, and none of a fit that raises appears.
    """
    fresh = copy(estimator)
    for name in [name for name in vars(fresh) if name.endswith("_")]:
        delattr(fresh, name)
    result = fresh._fit(*data)
    estimator.__dict__ = vars(fresh)
    return result
