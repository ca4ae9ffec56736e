"""Answers are the same bit for bit on one thread of BLAS and on two."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from sklearn.base import clone
from test_pickles import LOCAL, OVER_ALL, answers, map_of
from threadpoolctl import threadpool_info, threadpool_limits

from outsample import DiffusionMaps, Extended, _parallel
from outsample.estimators import diffusion_maps, map_extension
from outsample.neighbors.index import NeighborIndex

MODELS = LOCAL | OVER_ALL


def fitted_answers(name, threads):
    """Bytes of what a model tells, fitted and asked with so many threads of BLAS."""
    X, Y, Q = map_of(600)  # as many as "correlated" has neighbours: over all points
    alone = isinstance(MODELS[name], DiffusionMaps | Extended) or name == "detector"
    with threadpool_limits(threads, user_api="blas"):
        # A batch large enough for a product of matrices to be shared out.
        return answers(clone(MODELS[name]).fit(X, None if alone else Y), X[:200] + Q[0] / 100)


@pytest.mark.parametrize("name", MODELS)
def test_one_thread_or_two(name):
    assert fitted_answers(name, 1) == fitted_answers(name, 2)


def test_the_limit_is_what_makes_them_equal(monkeypatch):
    """Without it the factorisations differ, where BLAS has a second thread at all."""
    with threadpool_limits(2, user_api="blas"):
        if max((one["num_threads"] for one in threadpool_info()), default=1) < 2:
            pytest.skip("BLAS has one thread only")
    for module in (map_extension, diffusion_maps):
        monkeypatch.setattr(module, "one_blas_thread", contextlib.nullcontext())
    names = ("diffusion", "correlated", "nystroem", "harmonics", "diffusion maps")
    assert any(fitted_answers(name, 1) != fitted_answers(name, 2) for name in names)


def test_a_limit_that_fails_is_not_counted(monkeypatch):
    """The next one inside sets it again."""
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
            counts.extend(one["num_threads"] for one in infos if one["user_api"] == "openmp")
            return search.kneighbors(*args, **options)

    monkeypatch.setattr(index._backend.products, "search", Watched())
    before = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"]
    index.nearest(X[:20], 3)
    after = [one["num_threads"] for one in threadpool_info() if one["user_api"] == "openmp"]
    assert counts and set(counts) == {threads}
    assert before == after


def test_threads_of_n_jobs(monkeypatch):
    monkeypatch.setattr(_parallel.os, "cpu_count", lambda: 4)
    threads = {None: 1, 1: 1, 3: 3, -1: 4, -2: 3, -4: 1, -9: 1}
    assert {n_jobs: _parallel.thread_count(n_jobs) for n_jobs in threads} == threads
