"""A fitted map that learns from arriving rows, and reports when it is out of date."""

from __future__ import annotations

from threading import Lock
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from outsample._validation import check_number, check_queries, check_rows
from outsample.estimators.novelty_detector import NoveltyDetector
from outsample.estimators.pca_extension import PCAExtension
from outsample.points import in_metric
from outsample.records import JudgedPlacement, Placement
from outsample.streaming.drift_status import Drift, drift_of, refit_reason
from outsample.streaming.memory import Memory, empty_memory
from outsample.streaming.model import starting_model
from outsample.streaming.refitting import new_map
from outsample.streaming.stream_columns import stacked
from outsample.streaming.writer import Learned, Snapshot, StreamWriter

# The default delay is this fraction (1 / 10) of the window.
DELAY_FRACTION = 10
# One thread starts a stream while the others wait.
_STARTING = Lock()


class StreamingExtension(BaseEstimator):
    """Learn from arriving rows on a fitted map, and report when the map is out of date.

    ``place`` returns what the detector returns; ``learn`` places arrivals and then learns from
    them. *Every* arrival refreshes the calibration of p-values, but a run of unusual ones only
    once. Only arrivals whose p-value is above ``guard`` become neighbours of later points, with
    their placement as image, and only after ``delay`` further arrivals, at the end of a step (see
    Notes). The original points never move or leave. The extension itself is not changed.

    Parameters
    ----------
    extension : NoveltyDetector or PCAExtension
        Fitted; a detector with a map, ``fit(X, Y)``. Without a detector there are no p-values:
        every arrival becomes a neighbour.
    window : int, default=10000
        Maximum number of learned points, and the number of arrivals that the calibration covers;
        at least 20. When there are more learned points, the eighth of the window that was not
        seen for the longest time is removed.
    guard : float, default=0.1
        P-value above which an arrival may become a neighbour.
    delay : int, default=None
        Number of further arrivals before an accepted arrival becomes a neighbour, at most half of
        the window, so that a short event is not its own evidence. None is a tenth of the window,
        and 0 without a detector.

    Attributes
    ----------
    n_seen_, n_learned_ : int
        Arrivals so far, and those that became neighbours or wait for it.
    drift_ : Drift
        Whether the map still fits the arrivals; prints as a sentence.
    needs_refit_ : bool
        Whether the map is out of date; ``drift_.reason`` is the reason.
    n_features_in_ : int
        D.

    See Also
    --------
    NoveltyDetector : Scores and p-values of the arrivals.

    Notes
    -----
    Learning goes in steps of a hundredth of the window (at least one arrival), counted from the
    first arrival. Arrivals of a step are placed and scored by the state before the step, and
    ``place`` uses the last full step. So the state depends on the arrivals and their order alone:
    any division of the same arrivals into calls of ``learn`` gives bit-identical results.

    A calibration score is the score of a point at its arrival. The original scores are replaced
    evenly while the first ``window`` arrivals come in. As long as the distribution does not
    change, an arrival is therefore exchangeable with the calibration scores. Of up to 120 unusual
    arrivals in a row only the first counts, so that a long fault does not become usual. Neighbours
    wait for the same reason: arrivals of the same event are not independent evidence (Theiler).

    Arrivals that coincide with a training or learned point refresh the calibration only. Learned
    points are used by local placers, scores and isolation. All-points models, error bars and
    bounds use the original map only: the coordinates of a learned point are a placement, not
    evidence about the map.

    Threads may call ``place`` while another thread learns: they see the state before or after the
    call. Parameters cannot be changed once a stream has started, and
    its extension must not be fitted again: both raise ``ValueError``. There is no ``fit``, because
    the extension is already fitted; ``clone`` returns a stream around an unfitted extension.

    References
    ----------
    J. Theiler, "Spurious dimension from correlation algorithms applied to limited time-series
    data", Phys. Rev. A 34 (1986).

    Examples
    --------
    >>> import numpy as np
    >>> from outsample import NoveltyDetector, PCAExtension, StreamingExtension
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> ways = PCAExtension(n_neighbors=10, weighting="distance", order=0, loss="squared")
    >>> stream = StreamingExtension(NoveltyDetector(ways).fit(X, X))
    >>> learned = stream.learn([[0.1, 0.2], [9.0, 9.0]])
    >>> learned.accepted
    array([ True, False])
    >>> stream.n_seen_, stream.n_learned_, stream.needs_refit_
    (2, 1, False)
    """

    memory_: Memory
    n_features_in_: int
    _snapshot: Snapshot
    _writer: StreamWriter

    def __init__(
        self, extension: Any, *, window: int = 10_000, guard: float = 0.1, delay: int | None = None
    ) -> None:
        self.extension = extension
        self.window = window
        self.guard = guard
        self.delay = delay

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; a stream that has started keeps its parameters."""
        state = vars(self)
        if "_snapshot" in state and name in self._get_param_names():
            is_same = value is state[name] or (name != "extension" and value == state[name])
            if not is_same:
                raise ValueError(
                    f"{name} cannot be changed once a stream has started: it is {state[name]!r}. "
                    "Create a new StreamingExtension, which starts without learned points."
                )
        super().__setattr__(name, value)

    def __sklearn_tags__(self) -> Tags:
        """Return scikit-learn's tags: sparse points are allowed if the extension allows them."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.extension).input_tags.sparse
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters and the memory; the other state is rebuilt from these."""
        state = super().__getstate__()
        return {name: part for name, part in state.items() if name not in ("_snapshot", "_writer")}

    def start(self) -> StreamingExtension:
        """Build the model now instead of at the first call of another method.

        Returns
        -------
        self
        """
        self._now()
        return self

    def place(self, X: Any) -> Any:
        """Return the coordinates of new points, their quality, and scores of a detector.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Points.

        Returns
        -------
        JudgedPlacement or Placement
            With a detector, or without.
        """
        now, training = self._now(), self._core.training_
        Q, dtype = check_rows(self.extension, X)
        context = training.answer_type(dtype), now.calibration
        search, place = now.model.model.search, now.model.place
        fields = search.map_chunks(lambda rows: place(rows, *context), Q, training.metric)
        return (Placement if now.calibration is None else JudgedPlacement)(*fields)

    def learn(self, X: Any) -> Learned:
        """Place arrivals, and learn from them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, D)
            Arrivals, in the order in which they came.

        Returns
        -------
        Learned
            ``placement``, what `place` returned before the step of each arrival, and ``accepted``.
        """
        self._now()
        Q, dtype = check_queries(self.extension, X)
        training = self._core.training_
        Q, dtype = in_metric(Q, training.metric), training.answer_type(dtype)
        with self._writer.lock:
            self._snapshot, learned = self._writer.after(self._snapshot, Q, dtype)
            self.memory_ = self._snapshot.memory
        return learned

    def refit(self, embedding: Any) -> StreamingExtension:
        """Return a new stream on a new map of the original and the learned points.

        Parameters
        ----------
        embedding : object with ``fit_transform``
            Computes the map, with as many columns as the old one: for example a scikit-learn
            embedding. It is cloned.

        Returns
        -------
        StreamingExtension
            Has a newly fitted extension with the same parameters, and no arrivals yet. The new map
            is rotated, reflected, scaled and shifted to fit the old images best, so that it looks
            like the old map. This stream does not change.
        """
        X = stacked(self._core.model_.search.index.X, self._now().memory.points)
        Y = new_map(embedding, X, self._core.model_.quality.Y)
        extension = clone(self.extension)
        if isinstance(extension, NoveltyDetector):  # it may embed the points itself
            extension.set_params(extension=clone(self._core))
        fitted = extension.fit(X, Y)
        return StreamingExtension(fitted, window=self.window, guard=self.guard, delay=self.delay)

    @property
    def n_seen_(self) -> int:
        """Number of arrivals."""
        return self._now().memory.n_seen

    @property
    def n_learned_(self) -> int:
        """Number of arrivals that became neighbours or wait for it, including removed ones."""
        return self._now().memory.n_learned

    @property
    def needs_refit_(self) -> bool:
        """Whether the map is out of date; ``drift_.reason`` is the reason."""
        return bool(refit_reason(self._now(), self._writer.originals is not None))

    @property
    def drift_(self) -> Drift:
        """Whether the map still fits the arrivals."""
        return drift_of(self._now(), self._writer.originals, self._core.training_.map_size)

    @property
    def _core(self) -> PCAExtension:
        """The extension that places points, without the detector around it."""
        return getattr(self.extension, "_core", self.extension)

    def _now(self) -> Snapshot:
        """Return the current state; the first call builds it."""
        if "_snapshot" not in vars(self):
            with _STARTING:
                if "_snapshot" not in vars(self):
                    self._start()
        snapshot = self._snapshot
        if getattr(self._core, "model_", None) is not snapshot.model.original:
            raise ValueError(
                "The extension of this stream was fitted again after the stream had started. "
                "Create a new StreamingExtension, which starts without learned points."
            )
        return snapshot

    def _start(self) -> None:
        self._check_parameters()
        extension, core = self.extension, self._core
        has_scores = isinstance(extension, NoveltyDetector)
        model = starting_model(core.model_, extension.model_ if has_scores else None)
        self.n_features_in_ = extension.n_features_in_
        if hasattr(extension, "feature_names_in_"):
            self.feature_names_in_ = extension.feature_names_in_
        if "memory_" not in vars(self):
            self.memory_ = empty_memory(model)
        originals = extension.scores_ if has_scores else None
        delay = self._delay(has_scores)
        self._writer = StreamWriter(originals, int(self.window), delay, float(self.guard))
        self._snapshot = self._writer.started(model, self.memory_)

    def _delay(self, has_scores: bool) -> int:
        if self.delay is not None:
            return int(self.delay)
        return int(self.window) // DELAY_FRACTION if has_scores else 0

    def _check_parameters(self) -> None:
        check_number("window", self.window, 20, 10**9, whole=True)
        check_number("guard", self.guard, 0, 1)
        if self.delay is not None:
            check_number("delay", self.delay, 0, int(self.window) // 2, whole=True)
        extension = self.extension
        if not isinstance(extension, NoveltyDetector | PCAExtension):
            allowed = "a fitted NoveltyDetector with a map, or a fitted PCAExtension"
            raise TypeError(f"extension is {extension!r}, but must be {allowed}.")
        check_is_fitted(extension)
        if isinstance(extension, NoveltyDetector) and extension._map is None:
            raise ValueError(
                "There is no map to learn: pass the images to fit of the NoveltyDetector, shape "
                "(n, d), and use a PCAExtension to extend the map."
            )
