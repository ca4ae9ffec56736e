"""The answers of every estimator are those recorded before the methods became objects.

Bit for bit on the processor and the libraries of the recording, within rounding elsewhere.
"""

from __future__ import annotations

import numpy as np
import pytest

import recording

RECORDED = np.load(recording.FILE)
SAME_MACHINE = str(RECORDED["machine"]) == recording.machine()
# Exceptions, each with its reason.
ROUNDED = {
    "errors": "the race sees coordinates only, no longer residuals of placers over all points",
}
# What a fitted extension shows under another name than the recorder of old.
RENAMED = {"place.p_value": "place.p_values"}


@pytest.mark.parametrize("name", recording.cases())
def test_answers_are_those_recorded(name):
    for part, found in recording.cases()[name]().items():
        expected = RECORDED[f"{name}/{RENAMED.get(part, part)}"]
        if found.dtype.kind == "U":
            assert found.tolist() == expected.tolist(), part
        elif SAME_MACHINE and part not in ROUNDED:
            np.testing.assert_array_equal(found, expected, err_msg=part)
        else:
            near = 1e-4 if found.dtype == np.float32 else 1e-6
            size = np.abs(expected).max(initial=0)
            np.testing.assert_allclose(found, expected, near, 1e-9 * size, err_msg=part)


def test_the_recording_has_no_other_case():
    cases = {key.rsplit("/", 1)[0] for key in RECORDED.files if "/" in key}
    assert cases == set(recording.cases()) and len(cases) >= 30
