"""Cells of a query on the map of a reference: what is written where, alone and in a batch."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import outsample.anndata
from outsample import NoveltyDetector, PCAExtension, save
from outsample.anndata import fit_reference, map_query

ad = pytest.importorskip("anndata", reason="anndata is not installed")
N = 300
SCORES = ["outsample_error_bar", "outsample_abnormality", "outsample_p_value"]


@pytest.fixture(scope="module")
def reference():
    """Digits as cells: pixels as genes, ten principal components, a map of two of them bent."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:N].astype(np.float32), y[:N]
    cells = ad.AnnData(sparse.csr_matrix(X), var=pd.DataFrame(index=[f"g{i}" for i in range(64)]))
    center = X.mean(axis=0)
    loadings = np.linalg.svd(X - center, full_matrices=False)[2][:10].T
    cells.varm["PCs"], cells.uns["center"] = loadings, center
    cells.obsm["X_pca"] = (X - center) @ loadings
    cells.obsm["X_umap"] = np.tanh(cells.obsm["X_pca"][:, :2] / 20).astype(np.float32)
    cells.obs["digit"] = pd.Categorical(y.astype(str), categories=[*map(str, range(9, -1, -1))])
    cells.obs["name"] = np.array(list("abcdefghij"))[y]
    cells.obs["even"] = y % 2 == 0
    cells.obs["size"] = X.sum(axis=1).astype(np.float64)
    cells.uns["digit_colors"] = [f"#00000{i}" for i in range(10)]
    return cells


@pytest.fixture(scope="module")
def model(reference):
    return fit_reference(reference)


@pytest.fixture(scope="module")
def truth():
    return load_digits().target[N : N + 100]


@pytest.fixture
def query(reference):
    X = load_digits().data[N : N + 100].astype(np.float32)
    cells = ad.AnnData(sparse.csr_matrix(X), var=pd.DataFrame(index=reference.var_names.copy()))
    cells.obs_names = [f"cell{i}" for i in range(100)]
    cells.obsm["X_pca"] = (X - reference.uns["center"]) @ reference.varm["PCs"]
    return cells


def same(left, right):
    np.testing.assert_array_equal(left.obsm["X_umap"], right.obsm["X_umap"])
    pd.testing.assert_frame_equal(left.obs, right.obs, check_exact=True)


def test_what_is_written(reference, query, truth):
    query.obs["mine"] = np.arange(100)
    assert map_query(query, reference, obs=["digit", "name", "even", "size"]) is None
    assert query.obsm["X_umap"].shape == (100, 2) and query.obsm["X_umap"].dtype == np.float32
    labels = [part for name in ("digit", "name", "even") for part in (name, f"{name}_confidence")]
    assert list(query.obs) == ["mine", *SCORES, *labels, "size", "size_deviation"]
    placed = (
        NoveltyDetector()
        .fit(reference.obsm["X_pca"], reference.obsm["X_umap"])
        .place(query.obsm["X_pca"])
    )
    np.testing.assert_array_equal(query.obsm["X_umap"], placed.coordinates)
    np.testing.assert_array_equal(query.obs["outsample_p_value"], placed.p_value)
    np.testing.assert_array_equal(query.obs["outsample_error_bar"], placed.error_bar)
    assert (query.obs["digit"].astype(int) == truth).mean() > 0.8
    assert (query.obs["even"].astype(bool) == (truth % 2 == 0)).mean() > 0.8
    assert query.obs["digit_confidence"].between(0.1, 1).all()
    right = (query.obs["digit"].astype(int) == truth).to_numpy()
    confidence = query.obs["digit_confidence"]
    assert confidence[right].mean() > confidence[~right].mean()
    # Categories, their order and colours are the reference's.
    assert query.obs["digit"].dtype == reference.obs["digit"].dtype
    assert list(query.uns["digit_colors"]) == list(reference.uns["digit_colors"])
    error = np.abs(query.obs["size"] - query.X.sum(axis=1).A1) / reference.obs["size"].std()
    assert error.mean() < 0.7


def test_one_cell_gets_the_answer_of_the_batch(reference, model, query):
    singly = []
    for at in range(20):
        cell = query[at : at + 1].copy()
        map_query(cell, reference, obs=["digit", "size"], model=model)
        singly.append(cell)
    map_query(query, reference, obs=["digit", "size"], model=model)
    for at, cell in enumerate(singly):
        np.testing.assert_array_equal(cell.obsm["X_umap"], query.obsm["X_umap"][at : at + 1])
        pd.testing.assert_frame_equal(cell.obs, query.obs[at : at + 1], check_exact=True)


def test_chunks_change_nothing(reference, model, query, monkeypatch):
    whole = map_query(query, reference, obs=["digit", "size"], model=model, inplace=False)
    monkeypatch.setattr(outsample.anndata, "CHUNK_CELLS", 7)
    same(whole, map_query(query, reference, obs=["digit", "size"], model=model, inplace=False))


def test_a_copy_leaves_the_query_alone(reference, model, query):
    before = query.copy()
    copy = map_query(query, model=model, inplace=False)
    assert list(copy.obs) == SCORES and "X_umap" in copy.obsm
    assert list(query.obs) == list(before.obs) and "X_umap" not in query.obsm
    assert not query.uns


def test_files_backed_or_not(reference, query, tmp_path):
    """The UMAP model is long gone: coordinates in a file are enough."""
    reference.write_h5ad(tmp_path / "reference.h5ad")
    query.write_h5ad(tmp_path / "query.h5ad")
    wanted = map_query(query, reference, obs="digit", inplace=False)
    by_path = map_query(query, str(tmp_path / "reference.h5ad"), obs="digit", inplace=False)
    same(wanted, by_path)
    backed = ad.read_h5ad(tmp_path / "query.h5ad", backed="r")
    map_query(backed, tmp_path / "reference.h5ad", obs="digit")
    same(wanted, backed)
    copy = map_query(backed, reference, obs="digit", inplace=False)
    assert not copy.isbacked
    same(wanted, copy)
    copy.write_h5ad(tmp_path / "placed.h5ad")
    same(wanted, ad.read_h5ad(tmp_path / "placed.h5ad"))
    with pytest.raises(ValueError, match="query is a path"):
        map_query(tmp_path / "query.h5ad", reference)


def test_a_query_in_a_file_without_labels(model, query, tmp_path):
    query.write_h5ad(tmp_path / "query.h5ad")
    placed = map_query(tmp_path / "query.h5ad", model=model, inplace=False)
    placed.write_h5ad(tmp_path / "placed.h5ad")
    again = ad.read_h5ad(tmp_path / "placed.h5ad")
    same(placed, again)
    map_query(again, model=model)  # what was noted in uns is understood
    same(placed, again)


def test_the_matrix_itself_with_genes_by_name(reference, query, tmp_path):
    model = fit_reference(reference[:100], use_rep="X")
    np.testing.assert_array_equal(model.feature_names_in_, reference.var_names)
    asked = {"reference": reference[:100], "use_rep": "X", "obs": "digit", "inplace": False}
    wanted = map_query(query, model=model, **asked)
    shuffled = query[:, np.random.default_rng(0).permutation(64)].copy()
    extra = ad.AnnData(sparse.csr_matrix((100, 3), dtype=np.float32), obs=shuffled.obs.copy())
    extra.var_names = ["more1", "more2", "more3"]
    wider = ad.concat([extra, shuffled], axis=1)
    wider.write_h5ad(tmp_path / "wider.h5ad")
    backed = ad.read_h5ad(tmp_path / "wider.h5ad", backed="r")
    dense = wider.copy()
    dense.X = dense.X.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cells in (shuffled, wider, backed, dense):
            same(wanted, map_query(cells, model=model, **asked))
    with pytest.raises(
        ValueError, match=r"query.X: lacks 6 of the model's 64 features: 'g0', 'g1', "
    ):
        map_query(query[:, 6:].copy(), **asked)
    query.X.data[query.X.indptr[5]] = np.inf
    with pytest.raises(
        ValueError, match=r"query.X: row 5 \('cell5'\), column 'g\d+' is missing or infinite"
    ):
        map_query(query, model=model, **asked)


def test_columns_of_a_frame_in_obsm_are_matched_by_name(reference, model, query):
    names = [f"PC{i}" for i in range(10)]
    framed, asked = reference.copy(), query.copy()
    framed.obsm["X_pca"] = pd.DataFrame(framed.obsm["X_pca"], framed.obs_names, names)
    frame = pd.DataFrame(asked.obsm["X_pca"], asked.obs_names, names)
    asked.obsm["X_pca"] = frame[names[::-1]]
    same(map_query(query, model=model, inplace=False), map_query(asked, framed, inplace=False))


def test_cells_without_a_label_do_not_vote(reference, model, query):
    marked = reference.copy()
    hidden = (marked.obs["digit"] == "3").to_numpy()
    marked.obs.loc[hidden, "digit"] = np.nan
    marked.obs.loc[hidden, "size"] = np.nan
    marked.obs["none"] = pd.Series(np.nan, index=marked.obs_names, dtype="category")
    map_query(query, marked, obs=["digit", "size", "none"], model=model)
    assert not (query.obs["digit"] == "3").any() and query.obs["digit_confidence"].max() == 1
    assert query.obs["none"].isna().all() and (query.obs["none_confidence"] == 0).all()
    assert query.obs["size"].notna().any()


def test_replaced_columns_are_told_once(reference, model, query):
    query.obs["digit"] = "mine"
    query.uns["digit_colors"] = ["#ffffff"]
    with pytest.warns(UserWarning, match=r"replaced the columns 'digit' of query.obs"):
        map_query(query, reference, obs="digit", model=model)
    assert len(query.uns["digit_colors"]) == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        map_query(query, reference, obs=["digit", "name"], model=model)
    assert list(query.uns["outsample"]["obs"]) == ["digit", "name"]


def test_strange_cells_have_small_p_values(reference, model, query):
    query.obsm["X_pca"][:10] += 60
    map_query(query, model=model)
    p = query.obs["outsample_p_value"]
    assert p[:10].max() < 0.01 and p[10:].median() > 0.2


def test_a_view_becomes_a_query_of_its_own(reference, model, query):
    view = query[:10]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata tells that the view is copied
        map_query(view, model=model)
    assert "X_umap" in view.obsm and "X_umap" not in query.obsm


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"use_rep": "X_scvi"},
            KeyError,
            r"query.obsm has no 'X_scvi'; it contains 'X_pca'",
        ),
        ({"basis": "X_tsne"}, KeyError, r"reference.obsm has no 'X_tsne'"),
        ({"obs": "cell_type"}, KeyError, r"contains 'cell_type', but reference.obs has 'digit', "),
        ({"reference": None}, ValueError, "Pass a reference"),
        ({"reference": "nowhere.h5ad"}, FileNotFoundError, "nowhere.h5ad"),
        (
            {"reference": np.zeros((3, 2))},
            TypeError,
            "reference is a ndarray, but must be an AnnData",
        ),
        ({"model": PCAExtension()}, TypeError, "must be a NoveltyDetector fitted with a map"),
        ({"model": NoveltyDetector()}, TypeError, "must be a NoveltyDetector fitted with a map"),
    ],
)
def test_bad_arguments_are_told(reference, query, change, error, message):
    with pytest.raises(error, match=message):
        map_query(query, **{"reference": reference, **change})
    assert "X_umap" not in query.obsm and not list(query.obs)


def test_bad_queries_are_told(reference, model, query):
    short = query.copy()
    short.obsm["X_pca"] = short.obsm["X_pca"][:, :4]
    with pytest.raises(
        ValueError, match=r"query.obsm\['X_pca'\]: has 4 columns for the model's 10 features; the"
    ):
        map_query(short, model=model)
    query.obsm["X_pca"][[7, 9], 3] = np.nan
    with pytest.raises(
        ValueError, match=r"row 7 \('cell7'\), column 'column_4' is missing .* \(at least 2 such"
    ):
        map_query(query, model=model)
    with pytest.raises(ValueError, match="obs needs the reference, or a model file"):
        map_query(query, model=model, obs="digit")
    del query.obsm["X_pca"]
    with pytest.raises(KeyError, match=r"query.obsm has no 'X_pca'; it contains nothing"):
        map_query(query, model=model)
    with pytest.raises(ValueError, match=r"query.obsm\['X_pca'\] has no cells"):
        map_query(ad.AnnData(obsm={"X_pca": np.empty((0, 10))}), model=model)


def test_bad_references_are_told(reference, model, query):
    torn = reference.copy()
    torn.obsm["X_umap"] = torn.obsm["X_umap"].copy()
    torn.obsm["X_umap"][4, 1] = np.nan
    with pytest.raises(ValueError, match=r"obsm\['X_umap'\] as y: .*\n.*row 4, column 1"):
        fit_reference(torn)
    with pytest.raises(
        ValueError, match=r"The reference has 299 cells, but the model was fitted to 300"
    ):
        map_query(query, reference[1:], obs="digit", model=model)
    twice = reference.copy()
    twice.var_names = ["g"] * 64
    with pytest.raises(ValueError, match=r"reference.var_names contains 'g' more than once"):
        fit_reference(twice, use_rep="X")
    with pytest.raises(ValueError, match=r"reference.X is empty"):
        fit_reference(ad.AnnData(obsm=dict(reference.obsm)), use_rep="X")
    dated = reference.copy()
    dated.obs["day"] = pd.Timestamp("2020-01-01")
    with pytest.raises(TypeError, match=r"datetime64.* in 'day', but only labels and numbers"):
        map_query(query, dated, obs="day", model=model)


def test_without_anndata_files_name_the_extra(monkeypatch, tmp_path, query):
    path = tmp_path / "some.h5ad"
    path.touch()
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(ImportError, match=r'pip install "outsample\[anndata\]"'):
        map_query(query, path)


def test_a_model_file_with_its_columns_stands_for_the_reference(reference, model, query, tmp_path):
    path = tmp_path / "digits.outsample"
    saved = {"digit": reference.obs["digit"].astype(str), "size": reference.obs["size"]}
    save(model, path, columns=saved)
    wanted = map_query(query, reference, obs=["digit", "size"], model=model, inplace=False)
    found = map_query(query, model=path, obs=["digit", "size"], inplace=False)
    np.testing.assert_array_equal(found.obsm["X_umap"], wanted.obsm["X_umap"])
    assert (found.obs["digit"].astype(str) == wanted.obs["digit"].astype(str)).all()
    for name in (*SCORES, "digit_confidence", "size", "size_deviation"):
        np.testing.assert_array_equal(found.obs[name], wanted.obs[name])
    same(map_query(query, reference, model=str(path), obs=["digit", "size"], inplace=False), wanted)
    with pytest.raises(KeyError, match="contains 'name', but the model file has 'digit', 'size'"):
        map_query(query, model=path, obs="name")


def test_genes_are_kept_in_a_model_file(reference, query, tmp_path):
    fitted = fit_reference(reference[:60], use_rep="X")
    save(fitted, tmp_path / "genes.outsample")
    shuffled = query[:, ::-1].copy()
    same(
        map_query(query, model=fitted, use_rep="X", inplace=False),
        map_query(shuffled, model=tmp_path / "genes.outsample", use_rep="X", inplace=False),
    )
