"""What notebooks show: short texts, and tables that are well-formed HTML without other files."""

from __future__ import annotations

import dataclasses
import re

import casadi as ca
import numpy as np
import pytest
from lxml import etree

import concur as cc
from concur.certify import Status
from concur.errors import ConcurError
from concur.simulation import Integrator
from tests.simulation.loops import changed

STRANGE = 'a<b>&"c"\x1b ' + "long" * 100


def checked(value, *words):
    """Text and tree of what a notebook shows, if both are as they should be."""
    text, page = repr(value), value._repr_html_()
    assert len(text) < 200, text
    assert "\n" not in text
    for shown in (text, re.sub(r"base64,[\w+/=]*", "", page)):
        assert not re.search(r"0x[0-9a-f]{6}|\bnan\b|\binf\b| object at ", shown), shown
    tree = etree.fromstring(page)
    for node in tree.iter():
        assert node.tag in {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td", "img"}
        assert set(node.attrib) <= {"style", "alt", "src"}
        # Nothing from elsewhere, and no colour that only suits a white page.
        assert "url(" not in node.get("style", "")
        assert node.get("src", "data:image/png;base64,").startswith("data:image/")
        assert node.tag == "img" or not re.search(r"(?<!-)color:(?!inherit)", node.get("style", ""))
    whole = " ".join(tree.itertext())
    for word in words:
        assert word in whole, f"{word} in {whole}"
    return tree


@pytest.mark.by_default(6)
@pytest.mark.parametrize("name", cc.robots.__all__)
def test_robots_and_models_are_shown(name):
    robot = getattr(cc.robots, name)()
    tree = checked(robot, f"Robot {name}")
    columns = [row.findtext("td") for row in tree.findall("table")[1].iter("tr")]
    assert columns[1:] == [body.name for body in robot.bodies]
    model = cc.reduce(robot)
    checked(model, *model.shape_names, model.kind)
    renamed = dataclasses.replace(robot, name=STRANGE)
    title = checked(renamed).findtext("p/b")
    assert title == "Robot " + STRANGE.replace("\x1b", r"\x1b")
    checked(cc.reduce(renamed))


@pytest.fixture(scope="module")
def made():
    """Servo, run, run of another law, motion and certificate of a robot with a strange name."""
    robot = dataclasses.replace(cc.robots.planar_floater(), name="a<b>&'c'")
    model = cc.reduce(robot, momentum=[0, 0, 0, 0, 0, 0.5])
    hand = cc.Output("ha<n>d", "forearm", "R2", point=(0.4, 0, 0))
    servo = cc.Servo(model, [hand], 4.0, 4.0, torque_limits=9.0)
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    reference = cc.references.hold(servo.output(q) - 0.1, group="R2")
    run = cc.simulate(robot, servo, reference, 0.1, q, [0, 0], dt=Integrator(dt=0.01))
    motion = cc.simulation.forced_motion(
        model, lambda t, q, v: np.ones(2), 0.1, q, np.zeros(2), dt=0.01
    )
    return servo, reference, run, motion


def test_laws_audits_and_certificates_are_shown(made):
    servo, reference, run, _ = made
    checked(servo, "ha<n>d", "R2", "torques limited", "stiffness [1/s²]")
    checked(dataclasses.replace(servo, integral=2.0), "integral [1/s³]")
    audit = servo.audit(reference, 0.1, run.q[0])
    checked(audit, "CON1", audit["CON1"].why)
    failing = cc.reduce(cc.robots.rover_arm()).audit()
    failing = failing.replace(
        dataclasses.replace(failing["CON1"], status=type(failing["CON1"].status).FAILS, why="1 < 2")
    )
    checked(failing, "Assumptions that fail: CON1", "1 < 2")
    limited = cc.certify(servo)
    assert limited.status is Status.UNDECIDED
    checked(limited, "UNDECIDED", "no torque reaches its limit")
    certificate = cc.certify(servo.error_dynamics)
    assert certificate.status is Status.PROVED
    checked(certificate, "PROVED", f"{certificate.rate:.4g}", *certificate.conditions)
    undecided = dataclasses.replace(certificate, parts=(), status=Status.UNDECIDED)
    checked(undecided, "UNDECIDED")  # its transient bound is not a number


@pytest.mark.extended
def test_runs_motions_and_comparisons_are_shown_with_a_figure(made):
    _, _, run, motion = made
    for value, word in (
        (run, "smallest decoupling margin"),
        (motion, "work of the controls"),
        (cc.compare([run, run], ["<one>", "two"]), "<one>"),
    ):
        (image,) = checked(value, word).iter("img")
        assert len(image.get("src")) > 10_000


def test_runs_of_laws_without_outputs_are_shown():
    class Free:
        torque_limits = None
        model = cc.reduce(cc.robots.planar_floater())

        def graph(self):
            s = ca.SX.sym("s", 2)
            return ca.Function("free", [s], [-s], ["s"], ["u"])

    robot = cc.robots.planar_floater()
    start = robot.neutral(), [1.0, 0.0]
    run = cc.simulate(robot, Free(), None, 0.1, *start, dt=Integrator(dt=0.01))
    checked(run, "peak torque")
    checked(run.servo, f"Law of {robot.name}")


def test_numbers_that_are_not_finite_have_words(made):
    run = made[2]
    lost = changed(run, error=np.full_like(run.error, np.nan))
    assert len(repr(cc.compare([run], ["long" * 100]))) < 200
    row = cc.compare([lost])["error of ha<n>d, at the end"]
    assert row.shown == ("-",)
    assert "nan" not in str(cc.compare([lost]))


def test_animations_are_shown_and_saved(made, tmp_path):
    film = made[2].animate(fps=20)
    (image,) = etree.fromstring(f"<p>{film._repr_html_()}</p>").iter("img")
    assert image.get("src").startswith("data:image/gif;base64,R0lGOD")
    assert len(repr(film)) < 200
    assert film.save(tmp_path / "film.gif").read_bytes() == film.data
    with pytest.raises(ConcurError, match="film"):
        film.save(tmp_path / "film.gif" / "film.gif")
