"""Results of every estimator equal the recorded ones, and those of the saved model.

Results are compared bit for bit on the processor and libraries of the recording, and with
tolerances elsewhere.
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
def test_results_equal_the_recording(name, tmp_path):
    case = recording.cases()[name]
    fitted, Q = case.fit()
    results = case.answers(fitted, Q)
    for part, values in results.items():
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
        check_saved(case, fitted, Q, results, tmp_path / "model.outsample")


def check_saved(case, fitted, Q, results, path):
    """Check that a saved and loaded model has the same results, attributes and repr."""
    outsample.save(fitted, path)
    loaded = outsample.load(path)
    loaded_results = case.answers(loaded, Q)
    for part, values in results.items():
        np.testing.assert_array_equal(loaded_results[part], values, err_msg=part, strict=True)
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
