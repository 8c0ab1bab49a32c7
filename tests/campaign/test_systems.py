"""Campaigns of systems without bodies: each world is a run of its own, alone."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.stats import uniform

import concur as cc
from concur.campaign import Campaign
from concur.errors import ConcurError
from concur.simulation import Imperfections, RealPlant
from concur.worlds import Quantity, Requirement, Uncertainty
from tests.grid.test_stages import chain

FRICTION = Quantity(
    "viscous", "upper drive", uniform(0.0, 8e-4), unit="N m s/rad"
)  # behind a gear of 50
ANGLE = Quantity("initial_q", "lower", uniform(-0.1, 0.2), unit="rad")
BOUND = Requirement("error", "error y", (("error:y", -np.inf, 0.4),), 0.4, "rad", after=0.05)


@pytest.mark.extended
def test_worlds_are_runs_of_their_own() -> None:
    """Friction and start of two links, by the campaign and by a simulation without it."""
    links = chain("links")
    uncertainty = Uncertainty((FRICTION, ANGLE))
    found = cc.verify(links.task(), 3, uncertainty=uncertainty, requirements=[BOUND])
    worlds = uncertainty.draw(range(3), seed=0)
    assert np.ptp(worlds[:, 0]) > 1e-4
    for k, (friction, angle) in enumerate(worlds):
        real = RealPlant(
            imperfections=Imperfections.of(links.system, viscous={"upper drive": friction})
        )
        start = np.array(links.start) + np.array([0.0, angle])
        run = cc.simulate(
            links.system, links.law, links.reference, 0.1, start, np.zeros(2), 5e-3, plant=real
        )
        largest = np.linalg.norm(run.error[run.t >= 0.05 - 1e-9], axis=1).max()
        assert found.values[k, 0] == pytest.approx(0.4 - largest, abs=1e-6)


def test_facts_are_those_of_the_energies() -> None:
    """Another mass is another campaign; a copy is the same."""

    def key(task: Any) -> str:
        options = {"uncertainty": Uncertainty((FRICTION,)), "requirements": [BOUND]}
        return Campaign(task, **options).key

    task = chain("links").task()
    assert key(task) == key(pickle.loads(pickle.dumps(task)))
    assert key(task) != key(replace(task, robot=_heavier()))


def _heavier() -> cc.LagrangianSystem:
    system = chain("links").system
    q, v = (ca.vertcat(*[getattr(f, x) for f in system.factors]) for x in "qv")
    energy, height = system.graph(q, v)[:2]
    return cc.LagrangianSystem(
        1.01 * energy, height, system.factors, inputs=list(system.motors), name="links"
    )


def test_masses_are_no_quantities_of_energies() -> None:
    mass = Quantity("mass", "upper", uniform(0.0, 0.1), unit="kg")
    with pytest.raises(ConcurError, match="plant of `links`: expected a Mechanism"):
        cc.verify(chain("links").task(), 2, uncertainty=Uncertainty((mass,)), requirements=[BOUND])
