"""Laws side by side in worlds: errors and torques of direct runs, failures with their reasons."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import concur as cc
from concur.campaign import LawComparison, LawInWorlds, compare_laws
from concur.cli import main
from concur.errors import ConcurError
from concur.show.campaigns import laws_figure
from concur.simulation import Integrator
from tests.cli.test_gains import TASK

EXAMPLE = Path(__file__).parents[2] / "examples/unknown_payload.toml"


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few worlds are ready before a compiler is."""
    monkeypatch.setenv("CONCUR_CC", "none")


@pytest.mark.parametrize(
    ("worlds", "duration"), [(1, 4.4), pytest.param(3, 8.0, marks=pytest.mark.extended)]
)
def test_unknown_payload_leaves_the_servo_ten_times_as_far_off_as_the_passive_law(
    tmp_path: Path, worlds: int, duration: float
) -> None:
    """Numbers of the shipped example are those of runs of a heavier robot, made by hand."""
    text = EXAMPLE.read_text(encoding="utf-8")
    (tmp_path / "task.toml").write_text(text.replace("duration = 8.0", f"duration = {duration}"))
    task = cc.load_task(tmp_path / "task.toml")
    assert list(task.laws) == ["servo", "servo, integral", "passive", "passive, adaptive"]
    found = compare_laws(task, ["servo", "passive"], worlds, seed=3)
    drawn = task.uncertainty.draw(range(worlds), 3)
    assert task.uncertainty.labels == ("mass.forearm", "com.forearm[1]")
    for law in found.laws:
        for world, (mass, shift) in enumerate(drawn):
            own = task.robot.bodies[task.robot.index("forearm")]
            heavy = replace(
                own.inertia,
                mass=own.inertia.mass + mass,
                com=tuple(np.add(own.inertia.com, (0.0, shift, 0.0))),
            )
            bodies = [replace(b, inertia=heavy) if b is own else b for b in task.robot.bodies]
            run = cc.simulate(
                task.robot, task.with_law(law.name).law, task.reference, duration, task.q0, task.s0,
                Integrator(dt=0.004, control_period=0.004), replace(task.robot, bodies=bodies),
            )  # fmt: skip
            late = run.t[:-1] >= 4.0  # a campaign has no tick at the end
            for name, norms in run.error_norms.items():
                value = law.errors[name, "m"][world]
                assert value == pytest.approx(norms[:-1][late].max(), rel=1e-6)
                last = law.final[name, "m"][world]
                assert last == pytest.approx(norms[-2], rel=1e-6)
            assert law.peak["N m"][world] == pytest.approx(np.abs(run.u[:-1]).max(), rel=1e-6)
    assert found.notes[:2] == (
        "servo: stiffness base 4, hand 9; damping base 4, hand 6",
        "passive: stiffness base 60, hand 90; damping base 80, hand 60; rate base 2, hand 3",
    )
    servo, passive = (law.errors["hand", "m"] for law in found.laws)
    assert 0.01 < passive.min() <= passive.max() < 0.04
    assert 0.2 < servo.min() <= servo.max() < 0.6
    assert (servo > 10.0 * passive).all()
    assert [len(law.failures) for law in found.laws] == [worlds, 0]
    assert found.status == "failed"
    assert all(why.startswith("settle hand missed by") for why in found.laws[0].failures.values())


def test_quantiles_are_values_of_worlds_and_lost_worlds_are_infinite() -> None:
    def law(values: list[float], failures: dict[int, str]) -> LawInWorlds:
        share = np.full(len(values), np.nan)
        off, peak = {("hand", "m"): np.array(values)}, {"N m": np.arange(len(values), dtype=float)}
        end = {("hand", "m"): np.array(values) / 2.0}
        return LawInWorlds("a", "rover", off, end, share, peak, failures, 1.0)

    whole = [float(k) for k in range(1, 21)]
    kept = LawComparison((law(whole, {}),), 20, 0)
    assert [row.value for row in kept.rows] == [10.0, 19.0, 20.0, 10.0, 19.0, 0.0]
    assert (kept.status, kept.rows[4].quantity) == ("passed", "peak torque")
    one = LawComparison((law([*whole[:-1], np.inf], {19: "stopped at 2 s"}),), 20, 0)
    assert [row.value for row in one.rows[:3]] == [10.0, 19.0, np.inf]
    assert (one.status, one.rows[5].value) == ("failed", 1.0)
    two = LawComparison((law([*whole[:-2], np.inf, np.inf], {18: "at 1 s", 19: "at 2 s"}),), 20, 0)
    assert two.rows[1].value == np.inf
    assert two.problems == ("a: 2 of 20 worlds fail, world 18: at 1 s",)
    limited = replace(law(whole, {}), share=np.array([0.5, 0.8] * 10))
    assert LawComparison((limited,), 20, 0).rows[4].shown == "0.8"
    assert two.details["laws"][0]["errors"][0]["values"][-1] is None


OWN = """
import casadi as ca


class Idle:
    torque_limits = None

    def __init__(self, servo, push=0.0):
        self.model, self.push = servo.model, push

    def graph(self):
        t, s = ca.SX.sym("t"), ca.SX.sym("s", self.model.ns)
        gone = ca.if_else(t > 0.5, self.push / 0.0 if self.push else 0.0, 0.0)
        return ca.Function("idle", [t, s], [gone - 0.5 * s], ["t", "s"], ["u"])
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN.replace("self.push / 0.0", "ca.inf"))
    path = tmp_path / "task.toml"
    more = '[uncertainty.mass]\nforearm = [0.0, 0.1]\n[[laws]]\nname = "soft"\nkind = "passive"\n'
    path.write_text(TASK.replace("duration = 4.0", "duration = 0.6") + more)
    return path


@pytest.mark.parametrize(("spread", "scale"), [(9.9, "linear"), (10.1, "log")])
def test_the_figure_has_shares_in_percent_and_says_what_its_lines_are(
    spread: float, scale: str
) -> None:
    off, share = np.linspace(0.01, 0.01 * spread, 20), np.linspace(0.2, 0.4, 20)
    errors = {("hand, position", "m"): off, ("hand, rotation", "rad"): off}
    law = LawInWorlds("servo", "rover", errors, errors, share, {"N m": 5.0 * share}, {}, 5.0)
    figure = laws_figure(SimpleNamespace(laws=[law, replace(law, name="pd")]))
    figure.canvas.draw()
    *_, torque = figure.axes
    assert [axes.get_yscale() for axes in figure.axes] == [scale, scale, "linear"]
    assert torque.get_title() == "Peak torque [% of limit]"
    middle, most = (float(np.ravel(line.get_ydata())[0]) for line in torque.get_lines()[:2])
    assert 20.0 < middle < 31.0 < most <= 40.0
    (legend,) = figure.legends
    assert legend.get_texts()[0].get_text() == "median"
    for part in (legend, *(axes.title for axes in figure.axes)):
        box = part.get_window_extent()
        assert -1.0 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1.0, part


NAMES = (
    "servo", "servo, integral", "passive, adapts", "joint space, damped", "sampled_adaptive",
    "own.py:Idle, push = 1.0",
)  # fmt: skip


EXTREMES = [(count, outputs) for count in (1, 6) for outputs in (1, 2)]
BETWEEN = [(count, outputs) for count in (2, 3, 4) for outputs in (1, 2)]


@pytest.mark.by_default(len(EXTREMES))
@pytest.mark.parametrize(("count", "outputs"), EXTREMES + BETWEEN)
def test_names_of_laws_are_apart_and_inside_the_figure(count: int, outputs: int) -> None:
    errors = {(f"hand {k}", "m"): np.linspace(0.01, 0.2, 5) for k in range(outputs)}
    share = np.linspace(0.2, 0.4, 5)
    law = LawInWorlds("", "rover", errors, errors, share, {"N m": 5.0 * share}, {}, 5.0)
    laws = [replace(law, name=name) for name in (*NAMES[: count - 1], NAMES[-1])]
    figure = laws_figure(SimpleNamespace(laws=laws))
    figure.canvas.draw()
    for axes in figure.axes:
        labels = axes.get_xticklabels()
        texts = [label.get_text().replace("\n", " ") for label in labels]
        assert texts == [law.name for law in laws]
        boxes = [label.get_window_extent() for label in labels]
        for left, right in itertools.pairwise(boxes):
            assert left.x1 < right.x0, texts
        for box in boxes:
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
            assert box.y1 <= axes.get_window_extent().y0
            assert not any(box.overlaps(one.get_window_extent()) for one in figure.legends)
            assert not any(box.overlaps(one.title.get_window_extent()) for one in figure.axes)
        assert axes.get_window_extent().height > 120.0
        assert {label.get_fontsize() for label in labels} == {9.0}


@pytest.mark.extended
def test_command_writes_table_page_and_json(task: Path, tmp_path: Path) -> None:
    def called(*words: str) -> tuple[int, dict[str, object], str]:
        out = ("--out", str(tmp_path / "out"), "--json")
        done = CliRunner().invoke(main, ["compare", str(task), *words, *out])
        found = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        return done.exit_code, found, done.stderr

    laws = ("--law", "servo", "--law", "own.py:Idle", "--law", "own.py:Idle, push = 1.0")
    status, found, _ = called("--worlds", "3", *laws)
    assert status == 1
    assert {Path(str(file)).name for file in found["files"]} == {  # type: ignore[attr-defined]
        "laws.png", "report.html", "report.json", "concur.json"
    }  # fmt: skip
    assert [law["name"] for law in found["laws"]] == [  # type: ignore[attr-defined]
        "servo", "own.py:Idle", "own.py:Idle, push = 1.0"
    ]  # fmt: skip
    servo, idle, lost = found["laws"]  # type: ignore[misc]
    read = cc.load_task(task).with_law("servo")
    heavier = read.uncertainty.draw(range(3), 0)
    peaks = [np.abs(read.with_world(world).simulate().u[:-1]).max() for world in heavier]
    assert servo["torque_share"] == pytest.approx(np.array(peaks) / 4.0, rel=1e-6)  # of the law
    assert idle["torque_share"] == [None] * 3  # neither the robot nor this law has limits
    assert all("settle hand missed" in one["why"] for one in idle["failures"])
    assert [one["world"] for one in lost["failures"]] == [0, 1, 2]
    assert all("at 0.51 s" in one["why"] for one in lost["failures"])
    assert lost["errors"][0]["worst"] is None
    page = (tmp_path / "out/report.html").read_text()
    assert "own.py:Idle" in page
    assert "data:image/png" in page
    assert cc.load_result(tmp_path / "out/report.json").status == "failed"
    status, found, _ = called()  # the nominal world, with the laws of the file
    assert (status, found["runs"]) == (1, ["soft"])
    assert "soft breaks a limit: error of hand, final" in str(found["problems"])
    for words, text in (
        (("--law", "ghost"), "field `kind`"),
        (("--law", "passive, rate ="), "options in TOML"),
        (("--law", "pd, stiffness = 3.0", "--worlds", "2"), "field `damping`"),
        (("--law", "own.py:Idle, ghost = 1", "--worlds", "2"), "unexpected keyword"),
        (("--worlds", "0"), ""),
    ):
        status, _, problem = called(*words)
        assert (status, text in " ".join(problem.split())) == (2, True), words


def test_what_cannot_be_compared_is_refused(task: Path) -> None:
    read = cc.load_task(task)
    certain = replace(read, uncertainty=type(read.uncertainty)())
    with pytest.raises(ConcurError, match="a task with \\[uncertainty\\]"):
        compare_laws(certain, ["servo"], 1)
    with pytest.raises(ConcurError, match="no law"):
        compare_laws([], ["servo"], 1)
    short = replace(read, duration=0.05, requirements=())
    for twin, first in ((replace(short, name="other"), "reach"), (replace(short), "task.toml")):
        found = compare_laws([short, twin], ["servo"], 1)
        assert found.laws[0].name == f"{first}: servo"
    other = replace(read, outputs=(replace(read.outputs[0], name="tip"),))
    with pytest.raises(ConcurError, match="same names and groups"):
        compare_laws([read, other], ["servo"], 1)
    text = task.read_text()
    for table, place in (
        ('[[laws]]\nkind = "ghost"\n', '[[laws]] "ghost", field `kind`'),
        ('[[laws]]\nname = "soft"\nkind = "pd"\n', "[[laws]] 2, field `name`"),
        ('[[laws]]\nkind = "servo"\nghost = 1\n', '[[laws]] "servo", field `ghost`'),
        ('[[laws]]\nkind = "pd"\nstiffness = 4.0\n', '[[laws]] "pd", field `damping`'),
        ('[[laws]]\nkind = "none.py:Law"\n', '[[laws]] "none.py:Law", field `kind`'),
    ):
        task.write_text(text + table)
        with pytest.raises(ConcurError) as caught:
            cc.load_task(task)
        assert place in caught.value.where


def test_comparison_names_what_is_judged_and_the_laws_that_keep_it() -> None:
    off = {("hand", "m"): np.array([0.1, 0.2])}
    one = LawInWorlds("a", "rover", off, off, np.full(2, 0.5), {}, {}, 1.0, ("settle base",))
    kept = LawComparison((one,), 2, 0)
    assert kept.notes[-1] == "Worlds fail by the requirements settle base."
    other = replace(one, name="b", failures={1: "settle base missed by 0.1 m"})
    mixed = LawComparison((one, other), 2, 0)
    assert mixed.status == "failed"
    assert mixed.notes[-1] == "All 2 worlds keep them with `a`."
    assert "keep them" not in LawComparison((other,), 2, 0).notes[-1]
    assert mixed.details["laws"][0]["judged"] == ["settle base"]
