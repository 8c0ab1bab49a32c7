"""All cases that fail are reported."""

import pytest

from tests.oracles import each


def test_all_cases_that_fail_are_told():
    def check(number):
        assert number < 3, "too large"

    each([0, 1, 2], check)
    with pytest.raises(ExceptionGroup, match="2 of 4 cases fail") as caught:
        each([2, 3, 0, 4], check)
    assert [error.__notes__ for error in caught.value.exceptions] == [["Case: 3"], ["Case: 4"]]
    with pytest.raises(AssertionError):
        each([], check)
    with pytest.raises(ZeroDivisionError):
        each([0], lambda number: 1 / number)
