"""A chain of three links turns over the poles, and a load on two cables follows a path.

The directions of the chain follow great circles and cones; the load is carried by a point with a
thrust vector, through its differentially flat output.

Run this from anywhere: ``python examples/pointing_chain.py``. It writes `pointing_chain.png` into
the current folder.
"""

import casadi as ca
import matplotlib
import numpy as np

import concur as cc
from concur.control import HangingLoad
from concur.formulations import Factor
from concur.outputs import FunctionOutput

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# A point mass at the end of each link, and a motor about each axis. A link is a direction, a point
# on a two-sphere: it has no spin, and no torque acts about its line.
masses, lengths, g = (1.0, 0.7, 0.5), (0.8, 0.6, 0.9), 9.81  # kg, m, m/s^2
links = [Factor(f"link{k}", "S2", neutral=(0.0, 0.0, -1.0)) for k in (1, 2, 3)]
place, speed, kinetic, height = ca.SX(3, 1), ca.SX(3, 1), ca.SX(0), ca.SX(0)
frames = {"pivot": place}  # what the viewer draws, with a bar from one to the next
for link, mass, length in zip(links, masses, lengths, strict=True):
    place, speed = place + length * link.q, speed + length * link.qdot
    kinetic, height = kinetic + mass * ca.sumsqr(speed) / 2, height + mass * g * place[2]
    frames[f"end of {link.name}"] = place
motors = [name for link in links for name in link.freedom_names]
chain = cc.LagrangianSystem(kinetic, height, links, inputs=motors, name="chain", drawn=frames)
model = cc.reduce(chain)

# One output for each direction: two coordinates each, without poles.
q = ca.vertcat(*[link.q for link in links])
outputs = [FunctionOutput(link.name, ca.Function(link.name, [q], [link.q]), "S2") for link in links]
servo = cc.Servo(model, outputs, stiffness=16.0, damping=8.0)
proof = cc.certify(servo, angle=3.0)
print(proof)

# The first link goes up along a great circle and stays; the others go round cones about the
# vertical.
down = [0.0, 0.0, -1.0]
rise = cc.references.rest_to_rest(down, [0.28, 0.0, 0.96], 3.0, group="S2")
cones = [
    cc.references.polynomial([[0.0] * 3, [0.0, 0.0, rate]], start, group="S2")
    for rate, start in ((1.5, [0.6, 0.0, 0.8]), (-2.0, [0.8, 0.0, 0.6]))
]
reference = cc.references.stack(rise, *cones)

# All hang, so that the other two are up to 143 degrees off.
start = np.tile(down, 3)
run = cc.simulate(chain, servo, reference, 6.0, start, np.zeros(9), dt=2e-3)
print(run)  # run.view() shows it in a browser
angles = np.degrees(np.linalg.norm(run.error.reshape(-1, 3, 2), axis=2))
directions = run.q.reshape(-1, 3, 3)
nodes = np.cumsum(np.array(lengths)[:, None] * directions, axis=1)
along = np.einsum("kij,kij->ki", run.u.reshape(-1, 3, 3), directions[: len(run.u)])
print(f"largest torque about the line of a link: {abs(along).max():.1e} N m")


# A point with a thrust vector, as of a multicopter, carries a load on two cables, one below the
# other. Three forces act on seven degrees of freedom: the load's position is the flat output. The
# load begins at rest 0.5 m beside a rising eight and comes to it.
def eight(t: ca.SX) -> list[ca.SX]:
    """Path of the load, m."""
    return [1.2 * ca.sin(0.9 * t), 0.8 * ca.sin(1.8 * t), 0.3 * t]


carrier = HangingLoad([1.5, 0.3, 0.5], [0.8, 0.6], eight, rate=2.5)
hanging = np.array([0.5, 0.0, 1.4, 0.0, 0.0, -1.0, 0.0, 0.0, -1.0])
flight = cc.simulate(carrier.system, carrier, carrier.reference, 8.0, hanging, np.zeros(9), dt=2e-3)
print(flight)
away = np.linalg.norm(flight.error, axis=1)
top = flight.q[:, :3]
middle = top + 0.8 * flight.q[:, 3:6]
load = middle + 0.6 * flight.q[:, 6:]

figure = plt.figure(figsize=(10.0, 9.4))
space = figure.add_subplot(2, 2, 1, projection="3d")
for k, shade in zip(range(0, 3001, 250), np.linspace(0.85, 0.0, 13), strict=True):
    points = np.vstack([np.zeros(3), nodes[k]])
    space.plot(*points.T, "o-", color=(shade, shade, 0.9), lw=1.5, ms=3)
space.plot(*nodes[:, 2].T, color="tab:orange", lw=1.0, label="path of the last mass")
space.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", title="every half second, the last dark")
space.legend(loc="upper left", fontsize="small")
space.set_aspect("equal")
space.locator_params(nbins=4)
plain = figure.add_subplot(2, 2, 2)
for name, values in zip([link.name for link in links], angles.T, strict=True):
    plain.plot(run.t, values, label=name)
plain.set(xlabel="time (s)", ylabel="angle to the goal (degrees)", title="errors on the sphere")
plain.grid(alpha=0.3)
plain.legend()
space = figure.add_subplot(2, 2, 3, projection="3d")
for k in range(0, 4001, 250):
    points = np.vstack([top[k], middle[k], load[k]])
    space.plot(*points.T, color="0.5", lw=1.0)
    space.plot(*points[:1].T, "s", color="tab:blue", ms=4)
    space.plot(*points[1:].T, "o", color="0.3", ms=2)
space.plot(*load.T, color="tab:orange", lw=1.0, label="path of the load")
space.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", title="a load on two cables")
space.legend(loc="upper left", fontsize="small")
space.set_aspect("equal")
space.locator_params(nbins=4)
plain = figure.add_subplot(2, 2, 4)
plain.semilogy(flight.t, away)
plain.set(xlabel="time (s)", ylabel="distance from the path (m)", title="error of the load")
plain.grid(alpha=0.3)
figure.tight_layout()
figure.savefig("pointing_chain.png", dpi=100)
assert proof.status is cc.Status.PROVED
assert angles[-1].max() < 1e-4
assert abs(along).max() < 1e-9
assert away[-1] < 1e-4
