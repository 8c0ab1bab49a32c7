"""Pages: verdict first, then what was asked; one file that refers to no other; notebooks too."""

from __future__ import annotations

import base64
import dataclasses
import io
import re
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from lxml import etree
from PIL import Image

import concur as cc
from concur.certify import Status
from concur.errors import ConcurError
from concur.results import Row, verdict
from concur.show import new_figure, run_figures, write_report, write_result
from concur.show.page import quantities
from concur.simulation import Integrator
from tests.show.fake import AUDIT, SUMMARY, AuditRow, found
from tests.show.fake import Status as AuditStatus
from tests.simulation.loops import changed

STRANGE = 'a<b>&"c"\x1b ' + "long" * 100


def page_of(path):
    """Source and tree of a page, which refers to no other file."""
    source = path.read_text("utf-8")
    assert source.startswith("<!DOCTYPE html>")
    assert not re.search(r"https?:|@import|url\(|<script|<link|href=", source)
    tree = etree.HTML(source)
    assert all(image.get("src").startswith("data:image/") for image in tree.iter("img"))
    return source, tree


def words(node):
    return " ".join(" ".join(text for text in node.itertext()).split())


@pytest.fixture(scope="module")
def run():
    """The rover on its task, for a short time."""
    task = cc.load_task("examples/rover_arm.toml")
    return dataclasses.replace(task, duration=0.05).simulate()


@pytest.fixture
def report(run, tmp_path):
    def write(rows=SUMMARY, audit=AUDIT, figures=None, **options):
        path = write_report(run, rows, audit, figures or {}, tmp_path / "out", **options)
        return page_of(path)

    return write


def test_report_tells_everything(report, run):
    facts = [("Integration", "rk4, dt = 0.01 s"), ("Plant", "a & b")]
    notes = [("The momentum", "assumed 1 < 2\nmeasured 2")]
    source, tree = report(title="to the <door>", facts=facts, notes=notes)
    shown = words(tree)
    for row in SUMMARY:
        assert all(part in shown for part in (row.quantity, row.shown, row.shown_limit))
    for row in AUDIT:
        assert all(part in shown for part in (row.id, row.statement, row.status.value, row.why))
    for text in ("0.05 s, ", "R3", "to the <door>", *sum(facts, ())):
        assert text in shown
    assert "<title>to the &lt;door&gt;</title>" in source
    assert "<pre>assumed 1 &lt; 2\nmeasured 2</pre>" in source
    assert all(body.name in shown for body in run.robot.bodies)
    assert f"({', '.join(f'{x:.4g}' for x in run.servo.outputs[0].point)})" in shown


@pytest.mark.extended
def test_figures_are_embedded_as_they_are(report, run, tmp_path):
    drawn = run_figures(run)["errors"]()
    saved = tmp_path / "saved.png"
    drawn.savefig(saved)
    _, tree = report(figures={"errors": drawn, "saved": saved, "robot": new_figure(1.0, 1.0)})
    images = list(tree.iter("img"))
    assert [image.get("alt") for image in images] == ["errors", "saved", "robot"]
    for image in images:
        kind, data = image.get("src").split(";base64,")
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            assert f"data:image/{picture.format.lower()}" == kind
    assert base64.b64decode(images[1].get("src").split(",")[1]) == saved.read_bytes()
    assert "details" in [node.tag for node in images[2].iterancestors()]  # no answer on the motion
    least, width = (int(re.search(rf"\b{n}:(\d+)px", images[0].get("style"))[1])
                    for n in ("min-width", "width"))  # fmt: skip
    assert width == 480
    assert least < 358  # a chart fits into a telephone with its text at two thirds or more
    assert least > 0.66 * width


@pytest.mark.parametrize(
    ("rows", "audit", "headline", "reason"),
    [
        (SUMMARY, AUDIT, "The run meets its task", "4 limits kept, 2 assumptions hold."),
        (SUMMARY, AUDIT, "The run meets its task", "Not checked: NHR3."),
        ([found("slip", 3.0, 1.0), *SUMMARY], AUDIT, "does not meet", "Limits missed: slip."),
        (
            SUMMARY,
            [AuditRow("CON6", "closed", AuditStatus.FAILS, "residual 1"), *AUDIT],
            "does not meet",
            "Assumptions that fail: CON6.",
        ),
        (
            [Row("stopped early", "a singular <x>", holds=False)],
            AUDIT,
            "does not meet",
            "Stopped early: a singular <x>",
        ),
        ([SUMMARY[-1]], [], "Nothing was judged", "0 limits kept"),
    ],
)
def test_verdict_follows_limits_and_audit(report, rows, audit, headline, reason):
    _, tree = report(rows, audit)
    (banner,) = tree.xpath("//div[starts-with(@class, 'banner')]")
    assert headline in words(banner)
    assert reason in words(banner)
    mark = {"The run meets its task": "good", "does not meet": "bad"}.get(headline, "none")
    assert banner.get("class") == f"banner {mark}"


def test_errors_and_quantities_near_their_limits_come_first_and_others_are_folded(report):
    missed = found("slip", 3.0, 1.0)
    source, _ = report([*SUMMARY, missed])
    shown, folded = source.split("<details>", 1)
    for row in (*SUMMARY[:2], SUMMARY[3], missed):
        assert row.quantity in shown
    for row in (SUMMARY[2], SUMMARY[4]):
        assert row.quantity not in shown
        assert row.quantity in folded
    assert "80 %" in shown
    assert "78 %" in folded
    assert "&lt; 0.1 %" in shown
    far, farther = found("far", 900.0, 1.0), found("farther", 1100.0, 1.0)
    source, _ = report([far, farther])
    assert source.count("9e+04 %") == 1
    assert "1.1e+05 %" not in source


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "share"),
    [
        (-0.148, -6.28, True, 0.148 / 6.28),
        (-7.0, -6.28, True, 7.0 / 6.28),
        (1.72e-12, -6.28, True, 0.0),
        (-8.85e-05, -28.0, True, 8.85e-05 / 28.0),
        (21.0, 20.0, False, 1.05),
        (-3.0, 20.0, False, 0.0),
        (0.02, 0.01, True, 0.5),
        (0.005, 0.01, True, 2.0),
        (-0.1, 0.01, True, np.inf),
        (-0.2, -0.1, False, 0.5),
        (-0.05, -0.1, False, 2.0),
        (0.1, -0.1, False, np.inf),
        (1.0, 0.0, False, None),
        (1.0, None, False, None),
    ],
)
def test_share_of_a_limit_is_near_one_only_near_it(value, limit, at_least, share):
    row = Row.judged("q", value, limit, at_least=at_least)
    assert row.share == (None if share is None else pytest.approx(share))
    if share is not None:
        assert row.holds is (share <= 1.0)
    near, *_ = quantities([row])
    assert bool(near.rows) is (row.holds is False or (share or 0.0) >= 0.8)


@pytest.mark.parametrize(
    ("value", "headline", "mark"), [(1.0, "passed", "good"), (3.0, "failed", "bad")]
)
def test_any_result_has_a_page(tmp_path, value, headline, mark):
    row = Row.judged("peak <torque>", value, 2.0, "N m", "run 1")
    draw = lambda: new_figure(2.0, 1.0)  # noqa: E731
    result = SimpleNamespace(status=verdict([row]), rows=(row,), figures={"drawn": draw})
    _, tree = page_of(write_result(result, tmp_path, "two <runs>", [("steps", "7")]))
    shown = words(tree)
    for text in ("two <runs>", "peak <torque>", f"{value:.3g} N m", "run 1", "steps 7"):
        assert text in shown
    (banner,) = tree.xpath("//div[starts-with(@class, 'banner')]")
    assert banner.get("class") == f"banner {mark}"
    assert words(banner).startswith(headline)
    assert ("Missed: peak" in words(banner)) == (mark == "bad")
    assert [image.get("alt") for image in tree.iter("img")] == ["drawn"]


def test_files_that_cannot_be_read_or_written_are_refused(run, tmp_path):
    with pytest.raises(ConcurError, match="out"):
        write_report(run, SUMMARY, AUDIT, {"gone": tmp_path / "gone.png"}, tmp_path / "out")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(ConcurError, match=r"report\.html"):
        write_report(run, SUMMARY, AUDIT, {}, tmp_path)


def checked(value, *parts):
    """Tree of what a notebook shows, if text and HTML are as they should be."""
    text, page = repr(value), value._repr_html_()
    assert len(text) < 200, text
    assert "\n" not in text
    for shown in (text, re.sub(r"base64,[\w+/=]*", "", page)):
        assert not re.search(r"0x[0-9a-f]{6}|\bnan\b|\binf\b| object at |url\(", shown), shown
    tree = etree.fromstring(page)
    for image in tree.iter("img"):
        assert image.get("src").startswith("data:image/")
    whole = words(tree)
    for part in parts:
        assert part in whole, f"{part} in {whole}"
    return tree


@pytest.mark.by_default(6)
@pytest.mark.parametrize("name", cc.robots.__all__)
def test_robots_and_models_are_shown(name):
    robot = getattr(cc.robots, name)()
    tree = checked(robot, f"Robot {name}")
    names = [row.findtext("td") for row in next(tree.iter("table")).iter("tr")][1:]
    text = " ".join(tree.itertext())
    frames = [body.name for body in robot.bodies if f"{body.name} on {body.parent}" in text]
    assert sorted(names + frames) == sorted(body.name for body in robot.bodies)
    model = cc.reduce(robot)
    checked(model, *model.shape_names, model.kind)
    renamed = dataclasses.replace(robot, name=STRANGE)
    assert checked(renamed).findtext("p/b") == "Robot " + STRANGE.replace("\x1b", r"\x1b")


@pytest.fixture(scope="module")
def made():
    """Servo, reference, run and motion of a robot with a strange name."""
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
    checked(servo, "Servo of", "ha<n>d", "R2", "keeps limits: torque of")
    audit = servo.audit(reference, 0.1, run.q[0])
    checked(audit, "All assumptions hold", "CON1", audit["CON1"].why)
    failed = dataclasses.replace(audit["CON1"], status=type(audit["CON1"].status).FAILS)
    checked(audit.replace(failed), "Assumptions that fail: CON1")
    servo = cc.Servo(servo.model, servo.outputs, 4.0, 4.0)
    certificate = cc.certify(servo.error_dynamics)
    checked(certificate, "PROVED", *certificate.conditions)
    undecided = dataclasses.replace(certificate, parts=(), status=Status.UNDECIDED)
    checked(undecided, "UNDECIDED")  # its transient bound is not a number


@pytest.mark.extended
def test_runs_motions_and_comparisons_are_shown_with_a_small_figure(made):
    _, _, run, motion = made
    comparison = cc.compare([run, run], ["<one>", "two"])
    for value, word in (
        (run, "smallest"),
        (motion, "work of the controls"),
        (comparison, "<one>"),
    ):
        (image,) = checked(value, word).iter("img")
        assert 5_000 < len(image.get("src")) < 150_000


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
    lost = changed(made[2], error=np.full_like(made[2].error, np.nan))
    assert len(repr(cc.compare([made[2]], ["long" * 100]))) < 200
    row = cc.compare([lost])["error of ha<n>d, at the end"]
    assert row.shown == ("-",)
    assert "nan" not in str(cc.compare([lost]))


@pytest.mark.extended
def test_animations_are_shown_and_saved(made, tmp_path):
    film = made[2].animate(fps=20)
    (image,) = etree.fromstring(f"<p>{film._repr_html_()}</p>").iter("img")
    assert image.get("src").startswith("data:image/gif;base64,R0lGOD")
    assert len(repr(film)) < 200
    assert film.save(tmp_path / "film.gif").read_bytes() == film.data
    with pytest.raises(ConcurError, match="film"):
        film.save(tmp_path / "film.gif" / "film.gif")
