"""Phases of two satellites: figures 3a and 3b of A. Müller's paper, and its cycles of section 6b.

Run this from anywhere: ``python examples/phases.py``. It writes `phases.png` into the current
folder. The paper ("Hamel's equations and geometric mechanics of constrained and floating multibody
and space systems", 2023) prints no masses; those of `wheel_satellite` and `planar_floater` are
chosen here.
"""

import matplotlib
import numpy as np
from scipy.optimize import brentq

import concur as cc
from concur.planning import geometric_phase
from concur.simulation import reconstruct

matplotlib.use("Agg")
import matplotlib.pyplot as plt

CYCLES = 6
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.0, 4.0))

# Figures 3a and 3b: the wheels go round a closed curve once a second. At zero momentum the
# satellite's origin has moved after each cycle by the geometric phase alone; with the momentum
# that the wheels have at the start, it drifts too, and with wheels at rest (dashed) it only drifts.
model = cc.reduce(cc.robots.wheel_satellite())
q0 = model.robot.neutral()
times = np.linspace(0.0, CYCLES, 200 * CYCLES + 1)


def wheels(t: float) -> np.ndarray:
    """Speeds of the wheels, the rates of pi (cos 2 pi t - 1), pi sin 2 pi t, pi / 2 sin 4 pi t."""
    w = 2 * np.pi * t
    return 2 * np.pi**2 * np.array([-np.sin(w), np.cos(w), np.cos(2 * w)])


inertia = np.asarray(model.robot.mass_matrix(q0))
momentum = inertia[:6, 6:] @ wheels(0.0)
moving = model.at_momentum(momentum)
still = np.zeros(3)
ends = {}
for axes, name, own, speeds, style in (
    (left, "zero momentum", model, wheels, "-"),
    (middle, "total", moving, wheels, "-"),
    (middle, "wheels at rest", moving, lambda t: still, "--"),
):
    q = reconstruct(own, q0, times, speeds)
    ends[name] = q[[200, -1], :3]
    axes.plot(*1e3 * q[:, :2].T, style, lw=1.0, label=name)
    axes.plot(*1e3 * q[::200, :2].T, "o", ms=4, color=axes.lines[-1].get_color())
    print(f"{name}: origin after one and six cycles {np.round(1e3 * ends[name], 4).tolist()} mm")
for axes, title in ((left, "3a: geometric phase"), (middle, "3b: total and dynamic phase")):
    axes.set(xlabel="x (mm)", ylabel="y (mm)", title=f"{title}, {CYCLES} cycles")
    axes.set_aspect("equal", "datalim")
    axes.legend(fontsize="small")

# Section 6b: cycles of two joints after which the base of a planar robot stands as before. For
# that the curvature has to change its sign inside: its zeros are found on lines of the shape plane.
planar = cc.reduce(cc.robots.planar_floater())


def curvature(one: float, other: float) -> float:
    """Turn of the base for a small loop of the joints about a shape, per area."""
    q = planar.robot.neutral()
    q[3:] = one, other
    return -float(planar.curvature(q, [1.0, 0.0], [0.0, 1.0])[2])


grid = np.linspace(-np.pi, np.pi, 81)
field = np.array([[curvature(x, y) for x in grid] for y in grid])
found = []
for x in grid[::5]:
    values = [curvature(x, y) for y in grid]
    for a, b, fa, fb in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True):
        if fa * fb < 0.0:
            found.append((x, brentq(lambda y, x=x: curvature(x, y), a, b)))
assert max(abs(curvature(*point)) for point in found) < 1e-12


def turn(x: float, y: float, share: float = 1.0) -> float:
    """Turn of the base, rad, after an ellipse of the joints about a shape."""
    loop = cc.references.Loop([x + share, y], [[share, 0.0]], [[0.0, 0.7 * share]])
    return float(geometric_phase(planar, loop).log[2])


# About a zero the ellipse is moved until its turn vanishes: one that is pseudo-holonomic.
cycles = []
for x, y in (
    (0.0, 0.0),
    *[point for point in found if abs(point[0]) > 1.0 and abs(point[1]) < 2.0][::3],
):
    low, high = y - 0.6, y + 0.6
    same = np.sign(turn(x, low, 0.5)) == np.sign(turn(x, high, 0.5))
    center = y if same else brentq(lambda y, x=x: turn(x, y, 0.5), low, high, xtol=1e-13)
    cycles.append((x, center, turn(x, center, 0.5)))
    print(f"ellipse about ({x:.4f}, {center:.4f}) rad: turn {cycles[-1][2]:.1e} rad")
other = turn(0.6, 0.9, 0.5)
print(f"ellipse about (0.6, 0.9) rad: turn {other:.4f} rad")
shades = right.contourf(grid, grid, field, 21, cmap="coolwarm", vmin=-0.1, vmax=0.1)
right.contour(grid, grid, field, [0.0], colors="k", linewidths=0.8)
angle = np.linspace(0.0, 2 * np.pi, 100)
for x, y, _ in cycles:
    right.plot(x + 0.5 * np.cos(angle), y + 0.35 * np.sin(angle), "k-", lw=1.5)
right.set(xlabel="first joint (rad)", ylabel="second joint (rad)", title="6b: zeros of curvature")
figure.colorbar(shades, ax=right, label="turn per area (1/rad)")
figure.tight_layout()
figure.savefig("phases.png", dpi=100)
assert max(abs(phase) for *_, phase in cycles) < 1e-10 < abs(other)
