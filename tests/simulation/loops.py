"""Sampled loops in plain Python, and the smallest robot and laws for them."""

from __future__ import annotations

import dataclasses

import casadi as ca
import numpy as np

import concur as cc

INERTIA = 0.4  # kg m^2

WHEEL = cc.Mechanism(
    "one wheel",
    [
        cc.Body(
            "wheel", cc.joints.Revolute((0, 0, 1)), inertia=cc.Inertia(1.0, moments=(INERTIA,) * 3)
        )
    ],
    actuated=["wheel"],
)
"""One joint without gravity."""


def limited(robot, limits):
    """A robot with torque limits of some joints."""
    bodies = [
        dataclasses.replace(body, torque_limit=limits[body.name]) if body.name in limits else body
        for body in robot.bodies
    ]
    return dataclasses.replace(robot, bodies=bodies)


class Stay:
    """A law that gives constant torques."""

    torque_limits = None

    def __init__(self, robot, u):
        self.model, self.u = cc.reduce(robot), u

    def graph(self):
        q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
        return ca.Function("stay", [q, s], [ca.SX(ca.DM(self.u))], ["q", "s"], ["u"])


def rolled(program, x, ticks, reference=None, p=None, delay=0.0, seed=0):
    """States after all steps and signals of all ticks, one world in a plain loop."""
    rng = np.random.default_rng(seed)
    p = program.numbers()[0] if p is None else p
    rows = program.reference(reference, ticks)
    given, states, signals = [], [np.ravel(x)], []
    whole, rest = divmod(delay, 1.0)
    for k in range(ticks):
        x, u, y = program.tick(states[-1], p, rows[k], rng.normal(size=program.noises))
        assert float(y[0]) == 0.0
        given.append(u)
        at = [given[max(k - int(whole) - more, 0)] for more in (0, 1)]
        arrived = (1.0 - rest) * at[0] + rest * at[1]
        for _ in range(program.steps_per_tick):
            x, _ = program.step(x, p, arrived)
            states.append(np.array(x)[:, 0])
        signals.append(np.array(y)[:, 0])
    return np.array(states), np.array(signals)


def changed(run, **arrays):
    """A run with other arrays."""
    return dataclasses.replace(run, arrays={**run.arrays, **arrays})


def part(program, states, name):
    return program.state(states, name)
