"""Margins of the whole map from controls to outputs: where no torque is returned, none is left."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.certify import operating_bounds
from concur.control import decoupling_margin
from concur.errors import ConcurError, OutputError
from concur.formulations import Factor
from concur.outputs import FunctionOutput

MIX = np.array([[1.0, 0.4, -0.2], [0.3, 1.2, 0.5], [-0.6, 0.2, 0.9]])


def system(group: str, kind: str) -> cc.LagrangianSystem:
    """One factor with inputs of a kind."""
    part = Factor("a", group)
    speed, n = part.qdot if group == "S2" else part.v, part.v.shape[0]
    mix = ca.DM(MIX[:n, :n])
    inputs = {
        "motors": list(part.freedom_names),
        "one less": list(part.freedom_names[:-1]),
        "mixed": {f"u{i}": mix[i, :] @ part.v for i in range(n)},
        "one direction": {f"u{i}": (i + 1.0) * (mix[0, :] @ part.v) for i in range(n)},
        "one more": {f"u{i}": mix[i % n, :] @ part.v + i * part.v[0] for i in range(n + 1)},
        "turning": {f"u{i}": ca.cos(part.q[0]) ** i * part.v[i] for i in range(n)},
    }[kind]
    return cc.LagrangianSystem(0.4 * ca.sumsqr(speed), 0.0, [part], inputs=inputs)


def output(group: str, count: int) -> FunctionOutput:
    q = ca.SX.sym("q", Factor("a", group).q.shape[0])
    return FunctionOutput("o", ca.Function("o", [q], [q[:count]]), f"R{count}")


ACCEPTED = {
    **{(group, kind): True for group in ("R2", "R3", "SE2", "SO3") for kind in
       ("motors", "mixed", "one more", "turning")},
    **{(group, kind): False for group in ("R2", "R3", "SE2", "SO3") for kind in
       ("one less", "one direction")},
    **{("S2", kind): kind != "one direction" for kind in
       ("motors", "one less", "mixed", "one direction", "one more", "turning")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        pytest.param(*case, marks=() if case[0] in ("R3", "SO3") else pytest.mark.extended)
        for case in ACCEPTED
    ],
)
def test_a_servo_is_made_only_where_some_state_has_a_torque(group: str, kind: str) -> None:
    """And its margin is below the threshold exactly where none is returned."""
    model = cc.reduce(system(group, kind))
    if not ACCEPTED[group, kind]:
        with pytest.raises(OutputError, match="controls"):
            cc.Servo(model, [output(group, 2)], 4, 4)
        return
    law = cc.Servo(model, [output(group, 2)], 4, 4)
    rng, answered, refused = np.random.default_rng(2), 0, 0
    symbol = ca.SX.sym("q", law.nq)
    whole = ca.Function("margin", [symbol], [decoupling_margin(law, symbol)])
    for k in range(12):
        q = law.model.system.random(rng)
        if kind == "turning" and group not in ("SO3", "S2") and k % 2:
            q[0] = np.pi / 2 + 1e-9 * k  # where an input loses its lever
        hold = cc.references.hold(np.asarray(law.output(q)))(0.0)
        try:
            law.torque(q, np.zeros(law.ns), hold)
        except ConcurError:
            assert law.margin(q) < law.singular_margin
            refused += 1
        else:
            assert law.margin(q) >= law.singular_margin
            answered += 1
        margin = float(whole(q))
        assert margin == pytest.approx(law.margin(q), rel=1e-8, abs=1e-4)
    assert answered >= 6
    if group != "S2":
        assert (refused > 0) is (kind == "turning" and group != "SO3")


def test_a_run_records_the_margin_of_the_whole_map() -> None:
    """Of a cart whose motor acts along a direction that turns: Servo.margin, state by state."""
    law = cc.Servo(cc.reduce(system("R2", "turning")), [output("R2", 2)], 4, 4)
    hold = cc.references.hold([1.2, 0.5])
    run = cc.simulate(law.model.system, law, hold, 1.0, [0.2, 0.0], [0.0, 0.0], dt=0.05)
    np.testing.assert_allclose(run.margin, [law.margin(q) for q in run.q], rtol=1e-9)
    # H^T B = diag(1, cos q0) in the units of the median configuration: the closed form.
    rows, columns = law.model.actuation_scales
    sizes = np.abs([rows * columns * [1.0, np.cos(q[0])] for q in run.q])
    shares = sizes.min(axis=1) / sizes.max(axis=1)
    assert (run.margin <= shares * (1 + 1e-9)).all()
    assert (shares < 1.0).any()


def test_duplicate_outputs_are_refused() -> None:
    q = ca.SX.sym("q", 3)
    twice = FunctionOutput("o", ca.Function("o", [q], [ca.vertcat(q[0], 2 * q[0])]), "R2")
    with pytest.raises(OutputError, match="singular in every configuration"):
        cc.Servo(cc.reduce(system("R3", "motors")), [twice], 4, 4)


@pytest.mark.parametrize(("margin", "refused"), [(0.5, False), (2.0, True)])
def test_an_export_without_any_torque_is_refused(tmp_path, margin: float, refused: bool) -> None:
    law = cc.Servo(
        cc.reduce(system("R2", "motors")), [output("R2", 2)], 4, 4, singular_margin=margin
    )
    assert law.margin([0.3, 0.2]) == pytest.approx(1.0)
    if refused:
        with pytest.raises(ConcurError, match="SINGULAR"):
            law.export(tmp_path / "c")
    else:
        law.export(tmp_path / "c")
    assert any(tmp_path.glob("c/*.c")) is not refused


def test_a_box_in_which_controls_lose_their_lever_is_not_proved_regular() -> None:
    """A base that a steered wheel drives: straight ahead nothing turns its fork.

    In the upper box the leverage has the lesser bound, in the lower one it has none.
    """
    from tests.control.test_guards import towed

    law = towed()
    for low, proved in ((0.5, True), (-5e-4, False)):
        found = operating_bounds(law, {"fork": (low, low + 1e-3)}, budget=20)
        assert (found.status is cc.Status.PROVED) is proved, str(found)
        if proved:
            middle = law.model.robot.neutral()
            middle[5] = low + 5e-4
            assert found.margin is not None
            assert found.margin <= law.margin(middle)
