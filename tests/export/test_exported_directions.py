"""Laws with outputs on S2: exported C gives the torques of the tick, and none off the sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from concur.control import Servo
from concur.export._c import ExportStatus
from concur.groups import s2
from concur.outputs import ReferenceSample
from tests.export._export import COMPILERS, STRICT, compile_replay, run, servo

KINDS = ["pendulum", "camera", "camera, limited"]


def drawn(law: Servo, count: int) -> list[tuple[np.ndarray, np.ndarray, ReferenceSample]]:
    """States with references a turn away, up to half a one, and across the seam of the normals."""
    rng, system, found = np.random.default_rng(8), law.model.system, []
    turns = [1e-9, 1e-3, 0.3, 1.5, 3.0, np.pi]
    for k in range(count):
        q = system.random(rng)
        if law.nq == 3:
            q = np.array([*rng.normal(size=2), 1e-9 * rng.normal()]) if k % 3 == 0 else q
            q /= np.linalg.norm(q)
        s = rng.normal(size=law.ns)
        pose = np.array(law.output(q))
        axis = np.cross(pose[-3:], rng.normal(size=3))
        pose[-3:] = s2.turned(pose[-3:], turns[k % 6] * axis / np.linalg.norm(axis))
        pose[:-3] += 0.2 * rng.normal(size=len(pose) - 3)
        found.append((q, s, ReferenceSample(pose, *rng.normal(size=(2, pose.size)))))
    return found


def rows(law: Servo, states: list[Any]) -> np.ndarray:
    momentum = np.asarray(law.model.momentum) if law.model.takes_momentum else np.empty(0)
    return np.array(
        [
            np.concatenate([q, s, sample.pose, sample.twist, sample.acceleration, momentum])
            for q, s, sample in states
        ]
    )


@pytest.mark.by_default(1)
@pytest.mark.parametrize("kind", KINDS)
def test_exported_torques_are_those_of_the_tick(libraries: Any, kind: str) -> None:
    law, library = servo(kind), libraries(kind)
    states = drawn(law, 36)
    found, codes = library(rows(law, states))
    assert (codes == ExportStatus.OK).all()
    tick = law.compile(interpreted=True)
    for row, (q, s, sample) in zip(found, states, strict=True):
        torques = np.array(tick(q, s, sample))
        np.testing.assert_allclose(row[: law.nu], torques, atol=1e-9 * (1 + abs(torques).max()))
        if law.torque_limits is not None:
            assert (abs(row[: law.nu]) <= 40.0).all()
    assert np.ptp(found[:, : law.nu], axis=0).min() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_exports_replay_their_states(libraries: Any, kind: str) -> None:
    library = libraries(kind)
    assert library.folder.states >= 100
    compile_replay(library.path.parent, COMPILERS[0], "-O0", *STRICT, law="law.o")
    done = run("./replay", cwd=library.path.parent)
    assert done.returncode == 0, done.stdout
    assert f"{library.folder.states} states, 0 wrong" in done.stdout


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("factor", [0.0, 0.9989, 0.9991, 1.0009, 1.0011, np.nan])
def test_exports_refuse_what_is_no_direction(libraries: Any, kind: str, factor: float) -> None:
    """Of the reference, and of a configuration on S2: 1e-3 from unit length, as quaternions."""
    law, library = servo(kind), libraries(kind)
    given = rows(law, drawn(law, 1))[0]
    end, good = law.nq + law.ns + law.pose_size, abs(factor - 1.0) < 1e-3
    places = [slice(end - 3, end)]
    if kind == "pendulum":
        places.append(slice(0, 3))
    for place in places:
        row = given.copy()
        row[place] *= factor
        found, codes = library(row[None])
        assert (codes[0] == ExportStatus.OK) == good
        assert good == bool(abs(found[0, : law.nu]).max() > 0.0)
