"""The answers of every estimator are those recorded before the methods became objects.

Bit for bit on the processor and the libraries of the recording, within rounding elsewhere.
"""

from __future__ import annotations

import numpy as np
import pytest

import recording

RECORDED = np.load(recording.FILE)
SAME_MACHINE = str(RECORDED["machine"]) == recording.machine()
# Exceptions to "bit for bit", each with its reason.
ROUNDED = {
    "errors": "the race sees coordinates only, no longer residuals of placers over all points",
}
ROUNDED_OVER_ALL = {
    "numbers": "leave-one-out error, from the inverse of the factor instead of as many solves",
    "place.error_bar": "calibrated by these errors",
    "reasons": "training rows placed by the others",
}
# What a fitted extension shows under another name than the recorder of old.
RENAMED = {"place.p_value": "place.p_values"}


def is_over_all(answers):
    """Tell an extension whose placer takes all training points: their number is its k."""
    weighting, k = str(answers.get("chosen", "none 0 0 squared")).rsplit(" ", 3)[:2]
    return weighting.startswith(("Correlated", "Diffusion")) and int(k) > 120


@pytest.mark.parametrize("name", recording.cases())
def test_answers_are_those_recorded(name):
    answers = recording.cases()[name]()
    exceptions = ROUNDED
    if is_over_all(answers) or name == "detector roll auto map":
        exceptions = ROUNDED | ROUNDED_OVER_ALL
    for part, found in answers.items():
        expected = RECORDED[f"{name}/{RENAMED.get(part, part)}"]
        if found.dtype.kind == "U":
            assert found.tolist() == expected.tolist(), part
        elif SAME_MACHINE and part not in exceptions:
            np.testing.assert_array_equal(found, expected, err_msg=part)
        else:
            near = 1e-4 if found.dtype == np.float32 else 1e-6
            size = np.abs(expected).max(initial=0)
            np.testing.assert_allclose(found, expected, near, 1e-9 * size, err_msg=part)


def test_the_recording_has_no_other_case():
    cases = {key.rsplit("/", 1)[0] for key in RECORDED.files if "/" in key}
    assert cases == set(recording.cases()) and len(cases) >= 30
