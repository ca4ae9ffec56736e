"""Methods of a `PreparedModel` that the fitted estimator answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from scipy import sparse

from outsample._dask import lazy_on_dask
from outsample._validation import check_fitted
from outsample.records import Counts, Reals

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])

    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
        """Declare for type checkers that the method keeps its type."""
else:
    from sklearn.utils.metaestimators import available_if


def has_method(*names: str) -> Callable[[Any], bool]:
    """Return a check that the estimator has one of the methods."""

    def check(model: Any) -> bool:
        estimator = getattr(model, "estimator_", model.estimator)
        return any(hasattr(estimator, name) for name in names)

    return check


class DelegatedMethodsMixin:
    """Methods that prepare rows of a table and call the method of the estimator."""

    estimator_: Any
    _prepared: Callable[[Any], Any]

    def _delegate(self, method: str, table: Any, **options: Any) -> Any:
        check_fitted(self)
        return getattr(self.estimator_, method)(self._prepared(table), **options)

    @available_if(has_method("place"))
    @lazy_on_dask
    def place(self, table: Any) -> Any:
        """Return the placement of rows: coordinates, error bars, and with a detector p-values."""
        return self._delegate("place", table)

    @available_if(has_method("abnormality"))
    @lazy_on_dask
    def abnormality(self, table: Any) -> Reals:
        """Return the abnormality scores (q,) of rows; higher is more unusual."""
        return self._delegate("abnormality", table)

    @available_if(has_method("p_values"))
    @lazy_on_dask
    def p_values(self, table: Any) -> Reals:
        """Return the conformal p-values (q,) of rows."""
        return self._delegate("p_values", table)

    @available_if(has_method("predict"))
    def predict(self, table: Any) -> Counts:
        """Return -1 for rows with ``p <= alpha`` and 1 for the others."""
        return self._delegate("predict", table)

    @available_if(has_method("score_samples"))
    def score_samples(self, table: Any) -> Reals:
        """Return minus the abnormality scores (q,), as in scikit-learn."""
        return self._delegate("score_samples", table)

    @available_if(has_method("decision_function"))
    def decision_function(self, table: Any) -> Reals:
        """Return the scores (q,) above the threshold; negative for abnormal rows."""
        return self._delegate("decision_function", table)

    @available_if(has_method("discoveries"))
    def discoveries(self, table: Any, *, fdr: float = 0.1) -> Any:
        """Return a mask (q,) of rows that do not belong, with a limited false discovery rate."""
        return self._delegate("discoveries", table, fdr=fdr)

    @available_if(has_method("explain"))
    def explain(self, table: Any) -> Any:
        """Return the reasons for the score of each row."""
        return self._delegate("explain", table)

    @available_if(has_method("kneighbors"))
    def kneighbors(self, table: Any, n_neighbors: int = 15) -> Any:
        """Return the nearest training rows, nearest first."""
        return self._delegate("kneighbors", table, n_neighbors=n_neighbors)

    @available_if(has_method("neighbor_weights"))
    def neighbor_weights(self, table: Any) -> sparse.csr_matrix:
        """Return the weight (q, n) of each training row in the position of each row."""
        return self._delegate("neighbor_weights", table)

    @available_if(has_method("learn"))
    def learn(self, table: Any) -> Any:
        """Place arrivals and learn from them, if the estimator is a `StreamingExtension`."""
        return self._delegate("learn", table)

    @available_if(has_method("score"))
    def score(self, table: Any, y: Any = None) -> float:
        """Return minus the mean error of the placed rows; see the estimator's ``score``."""
        return self._delegate("score", table, y=y)
