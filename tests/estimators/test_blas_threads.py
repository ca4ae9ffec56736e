"""Results are bit-identical with one and with two BLAS threads."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from sklearn.base import clone
from test_pickles import ALL_POINTS, LOCAL, answers, map_of
from threadpoolctl import threadpool_info, threadpool_limits

from outsample import DiffusionMaps, Extended, _parallel
from outsample.estimators import diffusion_maps, map_extension
from outsample.neighbors.index import NeighborIndex

MODELS = LOCAL | ALL_POINTS


def results_of_a_fit(name, threads):
    """Return the results of a model as bytes, fitted and queried with this number of threads."""
    X, Y, Q = map_of(600)  # the n_neighbors of "correlated", which makes it an all-points model
    alone = isinstance(MODELS[name], DiffusionMaps | Extended) or name == "detector"
    with threadpool_limits(threads, user_api="blas"):
        # The batch is large enough for a multithreaded matrix product.
        return answers(clone(MODELS[name]).fit(X, None if alone else Y), X[:200] + Q[0] / 100)


@pytest.mark.parametrize("name", MODELS)
def test_one_thread_or_two(name):
    assert results_of_a_fit(name, 1) == results_of_a_fit(name, 2)


def test_without_the_limit_results_differ(monkeypatch):
    """Without the limit, factorisations differ if BLAS has two threads."""
    with threadpool_limits(2, user_api="blas"):
        if max((info["num_threads"] for info in threadpool_info()), default=1) < 2:
            pytest.skip("BLAS has one thread only")
    for module in (map_extension, diffusion_maps):
        monkeypatch.setattr(module, "one_blas_thread", contextlib.nullcontext())
    names = ("diffusion", "correlated", "nystroem", "harmonics", "diffusion maps")
    assert any(results_of_a_fit(name, 1) != results_of_a_fit(name, 2) for name in names)


def test_a_limit_that_fails_is_not_counted(monkeypatch):
    """A limit that fails is not counted, so that the next one is set."""
    context = _parallel._OneBlasThread()
    limits = []

    class Controller:
        def limit(self, **options):
            limits.append(options)
            if len(limits) == 1:
                raise OSError("no library")
            return self

        def restore_original_limits(self):
            limits.append("restored")

    monkeypatch.setattr(_parallel, "ThreadpoolController", Controller)
    with pytest.raises(OSError), context:
        pass
    assert context.inside == 0
    with context, context:
        assert context.inside == 2 and len(limits) == 2
    assert context.inside == 0 and limits[-1] == "restored"


@pytest.mark.parametrize(("n_jobs", "threads"), [(1, 1), (2, 2)])
def test_products_use_as_many_threads_as_jobs(n_jobs, threads, monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 40))
    index = NeighborIndex(X, "brute", n_jobs=n_jobs)
    index.build()
    search, counts = index._backend.products.search, []

    class Watched:
        def kneighbors(self, *args, **options):
            infos = threadpool_info()
            counts.extend(info["num_threads"] for info in infos if info["user_api"] == "openmp")
            return search.kneighbors(*args, **options)

    monkeypatch.setattr(index._backend.products, "search", Watched())
    before = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "openmp"]
    index.nearest(X[:20], 3)
    after = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "openmp"]
    assert counts and set(counts) == {threads}
    assert before == after


def test_threads_of_n_jobs(monkeypatch):
    monkeypatch.setattr(_parallel.os, "cpu_count", lambda: 4)
    threads = {None: 1, 1: 1, 3: 3, -1: 4, -2: 3, -4: 1, -9: 1}
    assert {n_jobs: _parallel.thread_count(n_jobs) for n_jobs in threads} == threads
