"""`PreparedModel`: an estimator that accepts tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils import Tags, get_tags

from outsample._dask import lazy_on_dask
from outsample._validation import (
    TrainingRecord,
    check_fitted,
    check_images,
    check_number,
    is_map,
    random_seed,
)
from outsample.estimators.map_extension import fit_in_one_step
from outsample.estimators.novelty_model import embeds_points
from outsample.preparation.columns import SPARSE_COLUMNS, Columns, describe_columns
from outsample.preparation.delegated_methods import (
    DelegatedMethodsMixin,
    available_if,
    has_method,
)
from outsample.preparation.folds import calibrate_by_folds, needs_folds, with_subspace_distance
from outsample.preparation.recipes import PreparationTrials
from outsample.preparation.table_cells import (
    as_frame,
    as_points,
    check_table,
    is_frame,
    number_of_rows,
    read_table,
    take_rows,
)
from outsample.preparation.table_preparation import TablePreparation
from outsample.records import Counts, Reals


class PreparedModel(DelegatedMethodsMixin, MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """An estimator with the preparation of its table: units, categories, gaps and dates.

    The model has the methods of the estimator (``transform``, ``place``, ``p_values``, ...), but
    they take rows of the table: frames of pandas and polars, Arrow tables, dicts of columns,
    arrays. A model file contains the preparation.

    Parameters
    ----------
    estimator : estimator
        Any estimator of this package; of a `StreamingExtension`, the extension is fitted.
    prepare : "auto", None or transformer, default="auto"
        ``"auto"`` is `TablePreparation`, which decides by the kind of each column and, if ``fit``
        is given a map, by leave-one-out on the map. None takes the numbers as they are. A
        scikit-learn transformer or Pipeline is cloned and fitted.
    folds : int, default=10
        Number of folds by which p-values and error bars are calibrated if the preparation
        contains a projection (PCA, SVD) or another fitted transformer of several columns. Such a
        preparation fits the training rows better than new rows. For a detector, the distance off
        the subspace of PCA and SVD becomes a column of the points.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    preparation_ : transformer or None
        The fitted transformer.
    columns_ : Columns
        Kind, treatment and range of each column of the table; prints as a table.
    selection_ : PreparationTrials
        The preparations that were compared on the map; prints as a table. Empty without a map,
        and for a given transformer.
    n_features_in_ : int
        Number of columns of the table.

    Notes
    -----
    With ``NoveltyDetector(calibration="split")`` the preparation is fitted to the half of the rows
    that the detector is fitted to, so that the p-values are exact.

    See Also
    --------
    NoveltyDetector : Scores and p-values.

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import NoveltyDetector, PreparedModel
    >>> rng = np.random.default_rng(0)
    >>> table = {"mass_g": rng.normal(4000, 800, 60), "sex": rng.choice(["f", "m"], 60)}
    >>> model = PreparedModel(NoveltyDetector()).fit(table)
    >>> print(model.columns_)
    column  kind      treatment              range
    mass_g  number    standardised           2139.98 to 5568.21
    sex     category  one-hot, 2 categories  m, f
    >>> new = {"mass_g": [4100.0, np.nan], "sex": ["f", "unknown"]}
    >>> model.p_values(new).round(2)
    array([0.85, 0.02])
    """

    estimator_: Any
    preparation_: Any
    columns_: Columns
    selection_: PreparationTrials
    training_: TrainingRecord
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(self, estimator: Any, prepare: Any = "auto", folds: int = 10) -> None:
        self.estimator = estimator
        self.prepare = prepare
        self.folds = folds

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: the input of the preparation, the output of the estimator."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.target_tags, tags.transformer_tags = inner.target_tags, inner.transformer_tags
        prepare = TablePreparation() if isinstance(self.prepare, str) else self.prepare
        tags.input_tags = inner.input_tags if prepare is None else get_tags(prepare).input_tags
        if not _is_auto(prepare):
            tags.input_tags.allow_nan &= inner.input_tags.allow_nan
        return tags

    def fit(self, table: Any, y: Any = None) -> PreparedModel:
        """Fit the preparation and the estimator.

        Parameters
        ----------
        table : pandas or polars frame, Arrow table, dict of columns, array or sparse matrix
            Training rows.
        y : array-like of shape (n, d), default=None
            Their map, or what else the estimator's ``fit`` takes.

        Returns
        -------
        self
        """
        fit_in_one_step(self, table, y)
        return self

    def fit_transform(self, table: Any, y: Any = None) -> Reals:
        """Fit, and return the coordinates of the training rows.

        Parameters
        ----------
        table : pandas or polars frame, Arrow table, dict of columns, array or sparse matrix
            Training rows.
        y : array-like of shape (n, d), default=None
            Their map, or what else the estimator's ``fit`` takes.

        Returns
        -------
        ndarray of shape (n, d)
        """
        return fit_in_one_step(self, table, y, "fit_transform")

    @lazy_on_dask
    def transform(self, table: Any) -> Reals:
        """Return the coordinates (q, d) of rows on the map."""
        return self._delegate("transform", table)

    @available_if(has_method("fit_predict"))
    def fit_predict(self, table: Any, y: Any = None) -> Counts:
        """Fit, and return -1 for training rows that are abnormal among the others, else 1."""
        return fit_in_one_step(self, table, y, "fit_predict")

    @available_if(has_method("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the coordinates."""
        check_fitted(self)
        return self.estimator_.get_feature_names_out()

    @property
    def offset_(self) -> float:
        """Threshold of ``decision_function``."""
        return self.estimator_.offset_

    def _prepared(self, table: Any) -> Any:
        """Return rows as the points that the estimator was fitted to."""
        if self.preparation_ is None:
            return table
        if not _is_auto(self.preparation_):
            table = self._matched(as_frame(table))
        try:
            return as_points(self.preparation_.transform(table))
        except ValueError:
            raise
        except Exception as error:  # a transformer may be of any origin
            raise ValueError(f"The preparation does not fit the table: {error!r}") from error

    def _matched(self, table: Any) -> Any:
        """Return the columns of a frame in the order of ``fit``; others are ignored."""
        if not is_frame(table) or not hasattr(self, "feature_names_in_"):
            return table
        names = list(self.feature_names_in_)
        missing = [name for name in names if name not in list(table.columns)]
        if missing:
            raise ValueError(f"The table lacks the column(s) {', '.join(map(repr, missing))}.")
        return table[names]

    def _fit(self, table: Any, y: Any, method: str = "fit") -> Any:
        check_number("folds", self.folds, 2, 10**6, whole=True)
        prepare = self._preparation()
        stream, estimator = None, clone(self.estimator)
        if not hasattr(estimator, "fit"):  # a stream, which starts from a fitted extension
            stream, estimator = estimator, clone(estimator.extension)
        table = check_table(table if _is_auto(prepare) else as_frame(table), least_rows=2)
        is_detector = hasattr(estimator, "abnormality")
        is_split = getattr(estimator, "calibration", None) == "split"
        has_folds = (is_detector or hasattr(estimator, "place")) and needs_folds(prepare)
        if has_folds and is_detector:
            prepare = with_subspace_distance(prepare)
        n = number_of_rows(table)
        images, training = _map_of(estimator, y, n), table
        if is_split:  # the rows that calibrate are kept out of the preparation
            estimator.set_params(random_state=random_seed(estimator.random_state))
            rows = estimator.fitted_rows(n)
            training = take_rows(table, rows)
            images = None if images is None else images[rows]
        self.preparation_, X = None, table
        if prepare is not None:
            self.preparation_ = clone(prepare).fit(training, images if _is_auto(prepare) else None)
            X = as_points(self.preparation_.transform(table))
        result = getattr(estimator, "fit" if stream is not None else method)(X, y)
        if has_folds and not is_split:
            calibrate_by_folds(estimator, prepare, table, int(self.folds))
        self._describe(table)
        fitted = getattr(estimator, "extension_", None) or estimator
        d = fitted.training_.map_columns or getattr(fitted, "n_components_", 0)
        self.training_ = TrainingRecord(n, sparse.issparse(table), map_columns=d)
        self.estimator_ = estimator
        if stream is not None:
            self.estimator_ = stream.set_params(extension=estimator).start()
        return result

    def _preparation(self) -> Any:
        if isinstance(self.prepare, str) and self.prepare == "auto":
            return TablePreparation()
        if self.prepare is None or (
            hasattr(self.prepare, "transform") and not isinstance(self.prepare, type)
        ):
            return self.prepare
        raise TypeError(f"prepare is {self.prepare!r}, but must be 'auto', None or a transformer.")

    def _describe(self, table: Any) -> None:
        """Record the columns of the table, and what is done with them."""
        preparation = self.preparation_
        self.selection_ = getattr(preparation, "selection_", PreparationTrials())
        if _is_auto(preparation):
            self.columns_, self.n_features_in_ = preparation.columns_, preparation.n_features_in_
            if hasattr(preparation, "feature_names_in_"):
                self.feature_names_in_ = preparation.feature_names_in_
        elif sparse.issparse(table):
            self.columns_, self.n_features_in_ = SPARSE_COLUMNS, table.shape[1]
        else:
            cells = read_table(table)
            treatment = "as it is" if preparation is None else f"by {type(preparation).__name__}"
            columns = describe_columns(cells)
            self.columns_ = Columns(tuple(c._replace(treatment=treatment) for c in columns))
            self.n_features_in_ = len(columns)
            if cells.names is not None:
                self.feature_names_in_ = np.array(cells.names, dtype=object)


# scikit-learn wraps both methods when the class is made, for ``set_output``, and would drop the
# condition if it were inside.
for _method in ("transform", "fit_transform"):
    _conditional = available_if(has_method("transform"))(vars(PreparedModel)[_method])
    setattr(PreparedModel, _method, _conditional)


def _is_auto(prepare: Any) -> bool:
    return isinstance(prepare, TablePreparation)


def _map_of(estimator: Any, Y: Any, n: int) -> np.ndarray | None:
    """Return the map (n, d) that the estimator is to extend; None if there is none."""
    if Y is None:
        return None
    is_detector = hasattr(estimator, "abnormality")
    extends_map = is_detector and is_map(Y) and not embeds_points(estimator.extension)
    if not get_tags(estimator).target_tags.required and not extends_map:
        return None
    values = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    shape = (n, 1 if values.ndim == 1 else int(np.prod(values.shape[1:])))
    return check_images(values, shape)
