"""Rigs by hand, and reports of encoders made from a motion that is known."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

import concur as cc
from hil._transmission import transmission_of
from hil.drives.feedback import Feedback
from hil.rig import Axis, BusSettings, EstimatorSettings, LoopSettings, PoseSettings, Rig
from hil.state.estimator import Estimator

PERIOD, LATENCY, COUNTS = 4e-3, 1e-3, 4096


def axis(name, **others):
    facts = {"torque_limit": 10.0, "torque_rate_limit": 500.0, "speed_limit": 10.0}
    return Axis(name, "cia402", 1, **(facts | {"counts": COUNTS} | others))


def rig_of(robot, q0=None, axes=None, pose=None, **settings):
    """A rig of a robot with one axis for each control; of its task only the start is known."""
    found = transmission_of(robot, "rig.toml")
    most = 10.0 * np.abs(found.ratios).sum(axis=1)
    return Rig(
        "rig",
        Path("rig.toml"),
        SimpleNamespace(robot=robot, q0=robot.neutral() if q0 is None else np.array(q0)),
        tuple(axis(name, speed_limit=speed) for name, speed in zip(found.motors, most, strict=True))
        if axes is None
        else tuple(axes),
        BusSettings("virtual", "x"),
        loop=LoopSettings(rate=1.0 / PERIOD),
        estimator=EstimatorSettings(latency=LATENCY, **settings),
        pose=pose,
    )


def pose_settings(**others):
    return PoseSettings(**({"timeout": 0.2, "largest_jump": 0.3} | others))


def law_of(model, measured=False):
    """The part of a servo that an estimator uses."""
    return SimpleNamespace(
        model=model, use_measured_velocity=measured, nw=model.nv if measured else model.ns
    )


def estimator_of(model, q0=None, axes=None, pose=None, measured=False, **settings):
    rig = rig_of(model.robot, q0, axes, pose, **settings)
    return Estimator(rig, law_of(model, measured), compiled=False)


class Encoders:
    """Reports of all axes of an estimator's rig, rounded to counts, with the rig's latency."""

    def __init__(self, estimator, step=2.0 * np.pi / COUNTS):
        self.estimator, self.step = estimator, step
        self.found = estimator.rig.transmission
        self.feedback = Feedback(len(self.found.motors))

    def round(self, position):
        return np.round(position / self.step) * self.step if self.step else position

    def report(self, q, sampled):
        """Configuration of the robot at an instant, as the drives report it a little later."""
        feedback = self.feedback
        feedback.position[:] = self.round(self.found.ratios @ q[list(self.found.q)])
        feedback.time[:] = sampled + LATENCY
        feedback.count += 1
        return sampled + LATENCY

    def follow(self, q, times, each=None, acceleration=None):
        """Let the estimator follow a motion: configurations at times, a cycle apart."""
        estimator, found = self.estimator, []
        for k, (state, sampled) in enumerate(zip(q, times, strict=True)):
            now = self.report(state, sampled)
            if not estimator.started:
                estimator.start(self.feedback, now, state)
            else:
                known = None if acceleration is None else acceleration(k)
                estimator.update(self.feedback, now, known)
            if each is not None:
                each(k, now)
            found.append((now, estimator.q.copy(), estimator.s.copy(), estimator.v.copy()))
        return [np.array(column) for column in zip(*found, strict=True)]


def motion_of(model, q0, duration, amplitude=0.5, seed=3, step=1e-3):
    """A smooth motion of the joints and the resulting motion of the lift, in steps of time.

    Integrated to 1e-10 by a method of eighth order, which has nothing of the estimator.
    """
    rng = np.random.default_rng(seed)
    rates, phases = rng.uniform(1.0, 3.0, model.ns), rng.uniform(0.0, 6.0, model.ns)

    def speeds(t):
        return amplitude * np.sin(rates * t + phases)

    times = np.arange(0.0, duration + step / 2, step)
    q = cc.simulation.reconstruct(model, q0, times, speeds, rtol=1e-10, atol=1e-12)
    return times, q, speeds


def at(times, values, instants):
    """Values between samples."""
    return np.array([np.interp(instants, times, column) for column in values.T]).T
