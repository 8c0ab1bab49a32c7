"""A misprint counts only if the printed form fails and the corrected one holds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sources._misprints import check_misprints

ONE = np.array([1.0, 2.0])


def test_the_check_sees_forms_that_are_not_as_claimed() -> None:
    check_misprints({"misprint_1": lambda: (ONE, 1.01 * ONE, ONE)})
    for values in ((ONE, ONE, ONE), (ONE, 2 * ONE, 1.01 * ONE), (ONE, 1.0005 * ONE, ONE)):
        with pytest.raises(ExceptionGroup):
            check_misprints({"misprint_1": lambda values=values: values})
    with pytest.raises(AssertionError):
        check_misprints({"other": lambda: (ONE, 2 * ONE, ONE)})
