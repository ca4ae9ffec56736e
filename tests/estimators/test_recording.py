"""The answers of every estimator are those recorded, and those of the model that was saved.

Bit for bit on the processor and the libraries of the recording, within rounding elsewhere. The
first recording was made before the methods became objects; it was made again when copies became
one point and ties were no longer cut, which changed the answers on data with copies or ties, the
rows that leave-one-out draws, and the last bits of sums over all points.
"""

from __future__ import annotations

import numpy as np
import pytest

import outsample
import recording
from outsample import Extended

RECORDED = np.load(recording.FILE)
SAME_MACHINE = str(RECORDED["machine"]) == recording.machine()


@pytest.mark.parametrize("name", recording.cases())
def test_answers_are_those_recorded(name, tmp_path):
    case = recording.cases()[name]
    fitted, Q = case.fit()
    found = case.answers(fitted, Q)
    for part, values in found.items():
        expected = RECORDED[f"{name}/{part}"]
        if values.dtype.kind == "U":
            assert values.tolist() == expected.tolist(), part
        elif SAME_MACHINE:
            np.testing.assert_array_equal(values, expected, err_msg=part)
        else:
            near = 1e-4 if values.dtype == np.float32 else 1e-6
            size = np.abs(expected).max(initial=0)
            np.testing.assert_allclose(values, expected, near, 1e-9 * size, err_msg=part)
    if "function" not in name:
        check_saved(case, fitted, Q, found, tmp_path / "model.outsample")


def check_saved(case, fitted, Q, found, path):
    """A model that was saved and loaded is the same in all that can be seen of it."""
    outsample.save(fitted, path)
    loaded = outsample.load(path)
    again = case.answers(loaded, Q)
    for part, values in found.items():
        np.testing.assert_array_equal(again[part], values, err_msg=part, strict=True)
    assert type(loaded) is type(fitted) and set(vars(loaded)) == set(vars(fitted))
    if not isinstance(fitted, Extended):
        assert repr(loaded) == repr(fitted)
        assert repr(loaded.get_params()) == repr(fitted.get_params())
    arrays = outsample.files.model_file.describe(path).arrays
    bytes_ = sum(size for *_, size in arrays)
    assert path.stat().st_size <= max(1.1 * bytes_, bytes_ + 50_000)


def test_the_recording_has_no_other_case():
    cases = {key.rsplit("/", 1)[0] for key in RECORDED.files if "/" in key}
    assert cases == set(recording.cases()) and len(cases) >= 30
