"""Chains: bounds of the error over time, and forged ones."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from concur.certify import Status, certify
from concur.certify._chain import ChannelChain, chain_of
from concur.certify._region import region_level
from concur.checker import recheck
from concur.control import ErrorDynamics
from concur.outputs.groups import Pose, Vector
from tests.certify._channel import channel
from tests.certify._motions import error_map
from tests.certify._stored import write

KP, KD = 4.0, 2.8


def loop(group, stiffness=KP, damping=KD):
    one = np.eye(group.dim)
    return ErrorDynamics(group, stiffness * one, damping * one, one)


@pytest.fixture(scope="module")
def posed():
    return certify(loop(Pose()), np.radians(60), chain=True)


def sizes(name, z, times, stiffness=KP, damping=KD):
    """|z| along a motion, by Runge-Kutta with B as an integral of matrix exponentials."""

    def rate(z):
        n = len(z) // 2
        B = error_map([name], z[:n])
        return np.concatenate([-B @ z[n:], stiffness * B.T @ z[:n] - damping * z[n:]])

    found = []
    for step in np.diff(times):
        found.append(np.linalg.norm(z))
        a = rate(z)
        b = rate(z + step / 2 * a)
        c = rate(z + step / 2 * b)
        z = z + step / 6 * (a + 2 * b + 2 * c + rate(z + step * c))
    return np.array(found)


@pytest.mark.extended
def test_motions_of_poses_stay_below_a_tail_without_forms():
    own = channel(Pose(), KP, KD)
    times = np.linspace(0.0, 4.0, 161)
    rng = np.random.default_rng(0)
    for angle in (0.05, 0.3):
        tail = chain_of(own, region_level(own, angle), ())
        bounds = np.array([tail.bound(t) for t in times[:-1]])
        for _ in range(3):
            z = rng.normal(size=12) * np.repeat([0.5, 1.0], 6)
            z *= 0.999 * angle * 2 / np.sqrt(4 * z[:6] @ z[:6] + z[6:] @ z[6:])
            share = sizes("SE3", z, times)
            assert (share <= bounds * share[0]).all()
    assert tail.settling(0.01) < 1.25 * 3.89  # s, of the linear loop


def test_a_tail_of_vectors_is_the_matrix_exponential():
    found = certify(loop(Vector("xy")), chain=True)
    A = np.array([[0.0, -1.0], [KP, -KD]])
    for time in (0.0, 0.5, 2.0, 6.0):
        norm = np.linalg.norm(expm(A * time), 2)
        assert norm * (1 - 1e-9) <= found.chain.bound(time) <= 1.03 * norm + 0.03
    assert 3.88 < found.settling(0.01) < 3.92
    # Beyond the steps the bound repeats.
    end = len(found.chain.parts[0].bounds) * found.chain.parts[0].step
    assert found.chain.bound(2.2 * end) < found.chain.bound(1.1 * end)
    assert found.chain.bound(15.4 / found.true_rate) < 1e-4
    assert found.settling(1e-9) > end


def test_the_bound_is_the_least_of_all_and_monotone_in_the_region():
    own = channel(Pose(), KP, KD)
    times = [own.true_rate * k / 4 for k in range(20)]
    before = None
    for angle in (0.001, 0.05, 0.2, 0.4):
        chain = chain_of(own, region_level(own, angle), ())
        bounds = np.array([chain.bound(t) for t in times])
        assert before is None or (bounds >= before).all()
        before = bounds


def test_settling_follows_bounds_beyond_their_end():
    part = ChannelChain(None, 1.0, (), 0.5, np.array([1.0, 0.5, 0.25, 0.125]))
    assert [part.settling(s) for s in (1.0, 0.9, 0.125, 0.1, 0.01)] == [0.0, 0.5, 1.5, 2.5, 4.5]
    assert part.bound(2.0) == 0.125
    assert part.bound(1.999) == 0.125
    assert part.bound(2.5) == 0.0625
    stuck = replace(part, bounds=np.array([1.0, 1.0]))
    assert stuck.settling(0.5) == stuck.bound(1.0) == np.inf


@pytest.mark.extended
def test_a_chain_of_poses_is_tighter_and_verified(posed, tmp_path):
    single = replace(posed, chain=None)
    assert posed.settling(0.01) < 1.25 * 3.89 < single.settling(0.01)
    posed.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.PROVED


@pytest.mark.slow
def test_settling_is_at_most_a_quarter_above_the_slowest_motion_found():
    """The start is the worst of several ascents over all starts within 170 degrees."""
    x = [1.3656, 0.3962, 0.5039, -0.0345, 1.2664, -0.904]
    z = np.array([*x, -0.3972, -0.0232, -0.0174, 0.0112, -0.3912, 0.2795])
    assert 9.0 * z[:6] @ z[:6] + z[6:] @ z[6:] < 9.0 * np.radians(170) ** 2
    times = np.linspace(0.0, 4.0, 401)
    share = sizes("SE3", z, times, 9.0, 5.0) / np.linalg.norm(z)
    last = np.flatnonzero(share > 0.01)[-1]
    after = [last + 1, last]  # the shares fall
    slowest = np.interp(np.log(0.01), np.log(share[after]), times[after])
    found = certify(loop(Pose(), 9.0, 5.0), np.radians(170), chain=True)
    assert slowest < found.settling(0.01) < 1.25 * slowest


@pytest.mark.extended
def test_motions_of_poses_stay_below_the_forms(posed):
    """The largest share of the bound is that of motions that have just entered a form's region."""
    times = np.linspace(0.0, 4.0, 161)
    bounds = np.array([posed.chain.bound(t) for t in times[:-1]])
    rng, most = np.random.default_rng(1), 0.0
    for _ in range(20):
        z = rng.normal(size=12) * np.repeat([0.5, 1.0], 6)
        z *= 0.999 * np.radians(60) * 2 / np.sqrt(4 * z[:6] @ z[:6] + z[6:] @ z[6:])
        share = sizes("SE3", z, times)
        most = max(most, (share / bounds / share[0]).max())
    assert 0.5 < most <= 1.0


@pytest.mark.extended
def test_forms_decay_from_where_the_errors_are_small(posed):
    """They begin with |x| in their region, before V_L is below their level."""
    (chain,) = posed.chain.parts

    def settled(forms):
        return chain_of(chain.channel, chain.level, forms).settling(0.1)

    nowhere = tuple(replace(form, angle=1e-9) for form in chain.forms)
    never = tuple(replace(form, level=0.0) for form in chain.forms)
    assert settled(chain.forms) == chain.settling(0.1) < 0.99 * settled(nowhere)
    # Without levels the first region is still entered by |x|, which V_L bounds.
    assert settled(chain.forms) <= settled(never) < np.inf
    neither = tuple(replace(form, level=0.0) for form in nowhere)
    assert settled(neither) > settled(nowhere)


def forged(document, path, change):
    document = json.loads(json.dumps(document))
    change(document["chain"][0], document)
    return recheck(write(path, document))


@pytest.mark.extended
def test_forged_chains_are_refused(posed, tmp_path):
    path = tmp_path / "proof.json"
    posed.save(path)
    document = json.loads(path.read_text())

    def lower(chain, _):
        chain["bounds"][1][10] *= 0.999

    def swap(chain, _):
        one, other = chain["forms"][0], chain["forms"][8]
        one["P"], other["P"] = other["P"], one["P"]
        one["rate"], other["rate"] = other["rate"], one["rate"]

    def loosen(chain, _):
        chain["forms"][8]["bound"] *= 1.01

    def larger(chain, _):
        chain["forms"][8]["angle"] *= 1.1
        chain["forms"][8]["distance"] *= 1.1

    def faster(chain, _):
        chain["forms"][8]["rate"] *= 1.1

    def gap(chain, _):
        chain["bounds"][0].pop()

    def stretch(chain, _):
        chain["step"] *= 0.5

    def drop(chain, _):
        chain["forms"] = []

    def widen(_, document):
        document["channels"][0]["bound"] *= 1.02
        document["channels"][0]["angle"] *= 1.02
        document["channels"][0]["distance"] *= 1.02

    for change in (lower, swap, loosen, larger, faster, gap, stretch, drop, widen):
        assert forged(document, path, change) is not Status.PROVED, change.__name__
    assert forged(document, path, lambda chain, _: None) is Status.PROVED
