"""The answers of every estimator are those recorded.

Bit for bit on the processor and the libraries of the recording, within rounding elsewhere. The
first recording was made before the methods became objects; it was made again when copies became
one point and ties were no longer cut, which changed the answers on data with copies or ties, the
rows that leave-one-out draws, and the last bits of sums over all points.
"""

from __future__ import annotations

import numpy as np
import pytest

import recording

RECORDED = np.load(recording.FILE)
SAME_MACHINE = str(RECORDED["machine"]) == recording.machine()


@pytest.mark.parametrize("name", recording.cases())
def test_answers_are_those_recorded(name):
    for part, found in recording.cases()[name]().items():
        expected = RECORDED[f"{name}/{part}"]
        if found.dtype.kind == "U":
            assert found.tolist() == expected.tolist(), part
        elif SAME_MACHINE:
            np.testing.assert_array_equal(found, expected, err_msg=part)
        else:
            near = 1e-4 if found.dtype == np.float32 else 1e-6
            size = np.abs(expected).max(initial=0)
            np.testing.assert_allclose(found, expected, near, 1e-9 * size, err_msg=part)


def test_the_recording_has_no_other_case():
    cases = {key.rsplit("/", 1)[0] for key in RECORDED.files if "/" in key}
    assert cases == set(recording.cases()) and len(cases) >= 30
