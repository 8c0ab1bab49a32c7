"""Certificates of nested regions: a smaller region has at least the rate of a larger one."""

import numpy as np
import pytest

from concur.certify import Status, certify
from concur.control import ErrorDynamics
from concur.outputs.groups import Pose, Rotation


@pytest.mark.extended
def test_a_smaller_region_of_poses_never_has_a_lower_rate():
    one = np.eye(6)
    dynamics = ErrorDynamics(Pose(), 4.0 * one, 4.0 * one, one)
    # A search alone finds less at 3 degrees than at 10, and nothing at 1 degree.
    found = [certify(dynamics, np.radians(angle)) for angle in (1.0, 3.0, 10.0)]
    assert all(one.status is Status.PROVED for one in found)
    rates = [one.rate for one in found]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.78 * found[0].true_rate


@pytest.mark.extended
def test_the_reserve_of_a_search_is_used_where_the_proof_does_not_need_it():
    gains = (np.diag([4.0, 4.0, 9.0]), np.diag([2.8, 2.8, 4.0]), np.eye(3))
    dynamics = ErrorDynamics(Rotation(), *gains)
    full, most = certify(dynamics, 0.5), certify(dynamics, 0.5, rate_fraction=0.99)
    assert full.status is most.status is Status.PROVED
    # The search keeps a tenth; a fraction of the rate is certified as it is.
    assert 0.92 < full.rate / full.true_rate < 1.0
    assert 0.88 < most.rate / most.true_rate < 0.9
