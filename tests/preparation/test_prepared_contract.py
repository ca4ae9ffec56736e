"""scikit-learn's own checks of prepared models."""

from __future__ import annotations

from sklearn.decomposition import PCA, KernelPCA
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from outsample import Extended, NoveltyDetector, NystroemExtension, PCAExtension, PreparedModel
from outsample.preparation.table_preparation import TablePreparation
from outsample.preparation.transformers import NearestRowsImputer, SubspaceDistance

DISTANCE = {"weighting": "distance", "order": 0, "loss": "squared"}
MODELS = [
    PreparedModel(PCAExtension(**DISTANCE)),
    PreparedModel(NoveltyDetector()),
    PreparedModel(NoveltyDetector(calibration="split")),
    PreparedModel(NystroemExtension(), prepare=StandardScaler()),
    PreparedModel(Extended(KernelPCA(n_components=2)), prepare=None),
    PreparedModel(NoveltyDetector(), prepare=PCA(1), folds=3),
    TablePreparation(),
    NearestRowsImputer(),
    SubspaceDistance(PCA(1)),
]


def expected_failures(estimator):
    if isinstance(getattr(estimator, "estimator", None), NoveltyDetector):
        return {"check_outliers_fit_predict": "training rows are left out, new ones are not"}
    return {}


@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_scikit_learn(estimator, check):
    check(estimator)
