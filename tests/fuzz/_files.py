"""Files of every kind that the packages read, and what reads them."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import concur as cc
from concur.certify import Disturbance, operating_bounds, tube
from concur.certify._decay import Decay
from concur.certify._recheck_document import law_hash
from concur.documents import document_hash
from concur.errors import ConcurError
from concur.io import recorded_law, repair_urdf, suggest_sidecar, suspicious_urdf
from concur.robot import suspicious
from hil._certificate import load_bound
from hil.record import Record
from hil.record._drain import ROWS_FILE, write_json
from hil.record.manifest import make_manifest
from hil.rig import load_rig
from hil.rig.busload import bus_loads
from tests.checker._stored import claims_no_more
from tests.checker._stored import sealed as resealed
from tests.fuzz._mutate import mutated, mutated_hdf5, mutated_xml
from tests.fuzz._watch import Fault, watch
from tests.hil._records import layout_of_rig, make_rig, numbered, task_and_servo, write_rows
from tests.io.test_urdf import random_urdf

ROOT = Path(__file__).parents[2]

SOLID = """
  <inertial><origin xyz="0 0 0.1" rpy="0.1 0 0"/><mass value="2"/>
    <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.025"/></inertial>
  <collision><origin xyz="0 0 0.1" rpy="1.5707963267948966 0 0"/>
    <geometry><cylinder radius="0.1" length="0.4"/></geometry></collision>"""
CART = f"""<?xml version="1.0"?>
<robot name="cart">
<link name="base">{SOLID}</link>
<link name="left">{SOLID.replace("0 0 0.1", "0 0 0")}</link>
<link name="arm">{SOLID}</link>
<link name="camera"/>
<joint name="l" type="continuous">
  <parent link="base"/><child link="left"/><origin xyz="0 0.2 0"/><axis xyz="0 1 0"/>
</joint>
<joint name="a" type="revolute">
  <parent link="base"/><child link="arm"/><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3" velocity="4"/>
</joint>
<joint name="c" type="fixed"><parent link="arm"/><child link="camera"/></joint>
</robot>
"""
SIDECAR = """name = "cart"
base = "planar"
gravity = [0.0, 0.0, -9.81]
actuated = ["l"]

[locked]
a = 0.5

[[wheels]]
body = "left"
radius = 0.1
kind = "disk"
"""

XACRO = f"""<?xml version="1.0"?>
<robot name="cart" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="height" default="0.2"/>
<xacro:property name="half" value="${{0.5 * 0.4}}"/>
<xacro:macro name="solid" params="name *origin">
  <link name="${{name}}"><xacro:insert_block name="origin"/>{SOLID}</link>
</xacro:macro>
<xacro:solid name="base"><visual/></xacro:solid>
<xacro:solid name="arm"><visual/></xacro:solid>
<joint name="a" type="revolute">
  <parent link="base"/><child link="arm"/><origin xyz="0 ${{half}} $(arg height)"/>
  <axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3" velocity="4"/>
</joint>
</robot>
"""

LAWS = {
    "pd": 'kind = "pd"\nstiffness = 20.0\ndamping = [1.0, 1.0, 2.0, 2.0, 1.0]\n',
    "passive": 'kind = "passive"\nrate = 2.0\ninternal_damping = 0.5\npayload = "forearm"\n',
}
"""Tables of laws other than a servo."""

PROOF = ROOT / "tests" / "data" / "rover_rig_proof.json"

WORK = 1e6
"""Work that the verification of a file may take, about a second."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    samples : tuple of Path
        Sound ones, in a folder that the mutated ones share with what they name.
    read : callable
        Reads one, and uses what it says.
    sealed : callable, optional
        Gives a changed file the hashes of what stands in it.
    mutate : callable
        Changes the bytes of a file.
    """

    samples: tuple[Path, ...]
    read: Callable[[Path], Any]
    sealed: Callable[[bytes], bytes] | None = None
    mutate: Callable[[bytes, random.Random], bytes] = mutated


def robot(path: Path) -> None:
    """Read a robot, reduce it and evaluate its model at rest."""
    made = cc.load(path)
    model = cc.reduce(made)
    model.velocity(made.neutral(), np.zeros(model.ns))


def urdf(path: Path, sidecar: Path | None = None) -> None:
    """Read a URDF file by every function that does; what is accepted is physical."""
    for read in (repair_urdf, suggest_sidecar):
        with suppress(ConcurError):
            read(path)
    made = cc.load(path, sidecar=sidecar)
    for body in made.bodies:
        second = 0.5 * np.trace(body.inertia.tensor) * np.eye(3) - body.inertia.tensor
        assert body.inertia.mass >= 0.0
        assert np.linalg.eigvalsh(second)[0] >= -1e-9 * np.abs(second).max()
    if made.nv:
        scale = np.sqrt(np.diag(mass := made.mass_matrix(made.neutral())))
        assert np.isfinite(mass).all()
        assert np.linalg.eigvalsh(mass)[0] >= -1e-12 * scale.max() ** 2
    suspicious(made)
    suspicious_urdf(path, sidecar)


def sidecar(path: Path) -> None:
    """Read the sidecar of the cart."""
    urdf(path.with_name("cart.urdf"), path)


def task(path: Path) -> None:
    """Read a task and evaluate its law at the start; draw a world of it, and read its proof."""
    made = cc.load_task(path)
    law = made.law
    made.uncertainty.draw(1)
    with suppress(ConcurError):
        _ = made.statement
    v = law.model.velocity(made.q0, made.s0)
    made.reference(0.7 * made.duration)
    if isinstance(law, cc.Servo):
        law.torque(made.q0, v, made.reference(0.0))


def rig(path: Path) -> None:
    """Read a rig, its bus load and the bound of its certificate."""
    made = load_rig(path)
    bus_loads(made)
    load_bound(made)


def certificate(path: Path) -> None:
    """Verify a certificate."""
    cc.recheck(path)


def result(path: Path) -> None:
    """Read a result; a run also with the law of its file."""
    with suppress(ConcurError):
        cc.Run.load(path, recorded_law(path))
    found = cc.load_result(path)
    assert found.status is not cc.Status.PROVED
    assert len(found.rows) >= 0


def samples(path: Path) -> None:
    """Follow samples of a motion; what is accepted has finite values."""
    found = cc.references.from_file(path, group="R2")(0.1)
    assert np.isfinite(found.flat_pose).all()
    assert np.isfinite(found.acceleration).all()


def about(servo: cc.Servo) -> Callable[[Path], None]:
    """Verify a file, and compare it with a servo's law."""

    def read(path: Path) -> None:
        cc.recheck(path, servo, work=WORK)

    return read


def task_proof(path: Path) -> None:
    """Verify the proof of a task; what is confirmed claims what the sound file claims."""
    if cc.recheck(path, work=WORK) is cc.Status.PROVED:
        found, sound = (
            json.loads(file.read_bytes()) for file in (path, path.with_name("rover_rig_proof.json"))
        )
        assert claims_no_more(found, sound), "a stronger claim is confirmed"


def record(path: Path) -> None:
    """Read a record."""
    made = Record.load(path.parent)
    for name in made.names:
        made.columns(name)
    assert made.duration >= 0.0 or not made.complete or made.wall.size


def sealed(data: bytes) -> bytes:
    """Give a changed certificate the hashes of what stands in it, where it can be parsed."""
    try:
        document = json.loads(data)
        law = document["law"]
        if "groups" in law:  # the instructions of an operating box have no hash of their own
            law["hash"] = law_hash(law["groups"], law["stiffness"], law["damping"], law["inertia"])
        document["hash"] = document_hash(document)
        return json.dumps(document).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return data


def sealed_task(data: bytes) -> bytes:
    """Give a changed proof of a task the hashes of what stands in it, where it can be parsed."""
    try:
        return json.dumps(resealed(json.loads(data))).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return data


def urdf_kinds(folder: Path) -> dict[str, Kind]:
    """Make sound URDF files and sidecars in a folder."""
    folder.mkdir(parents=True)
    (folder / "cart.urdf").write_text(CART)
    (folder / "cart.toml").write_text(SIDECAR)
    (folder / "cart.xacro").write_text(XACRO)
    for seed in range(4):
        (folder / f"tree{seed}.urdf").write_text(random_urdf(seed))
    return {
        "urdf": Kind(tuple(sorted(folder.glob("*.urdf"))), urdf, mutate=mutated_xml),
        "sidecar": Kind((folder / "cart.toml",), sidecar),
        "xacro": Kind((folder / "cart.xacro",), urdf, mutate=mutated_xml),
    }


def toml_kinds(folder: Path) -> dict[str, Kind]:
    """Copy sound robots, tasks and rigs into a folder."""
    examples = Path(shutil.copytree(ROOT / "examples", folder / "examples"))
    robots = Path(shutil.copytree(ROOT / "concur" / "robots", folder / "robots"))
    os.mkfifo(examples / "pipe.toml")
    (examples / "folder.toml").mkdir()
    for name, law in LAWS.items():
        text = (examples / "rover_arm.toml").read_text("utf-8")
        (examples / f"{name}.toml").write_text(f"{text}\n[law]\n{law}", "utf-8")
    tasks = [p for p in sorted(examples.glob("*.toml")) if p.is_file() and _is_task(p)]
    return {
        "robot": Kind((*sorted(robots.glob("*.toml")), *sorted(examples.glob("my_*.toml"))), robot),
        "task": Kind((*tasks, *sorted(examples.glob("*/task.toml"))), task),
        "rig": Kind(tuple(sorted(examples.glob("*/rig*.toml"))), rig),
    }


def kinds(folder: Path) -> dict[str, Kind]:
    """Make sound files of every kind in a folder."""
    plain, examples = toml_kinds(folder), folder / "examples"
    proofs = folder / "proofs"
    proofs.mkdir()
    for name in ("free_floater", "rover_arm"):
        law = cc.load_task(examples / f"{name}.toml").servo
        cc.certify(law, angle=1.0).save(proofs / f"{name}.json")
    tubes, boxes = proofs / "tubes", proofs / "boxes"
    tubes.mkdir()
    boxes.mkdir()
    flyer = cc.Servo(cc.reduce(cc.robots.free_flyer()), [cc.Output("hand", "tool", "SE3")], 4, 4)
    found = cc.certify(flyer, angle=1.0, rate_fraction=0.5)
    points = Disturbance(np.full(6, 0.01), points=np.diag(np.full(6, 0.01)))
    for name, given in (("length", 0.01), ("components", np.full(6, 0.01)), ("points", points)):
        tube(Decay.of(found.parts[0]), given).save(tubes / f"{name}.json")
    rover = cc.load_task(examples / "rover_arm.toml").servo
    ranges = {"turret": (-0.1, 0.0), "upper_arm": (0.9, 1.0), "forearm": (-1.7, -1.6)}
    asked = {"speeds": 0.3, "acceleration": 0.2, "pose_error": 0.05}
    weak = {"upper_arm": (-5.0, 5.0)}
    operating_bounds(rover, ranges).save(boxes / "margin.json")
    operating_bounds(rover, ranges, **asked, limits=weak).save(boxes / "refuted.json")
    operating_bounds(rover, ranges, **asked, limits=400.0).save(boxes / "torques.json")
    run = _record(folder / "record")
    ran = _results(folder / "results", examples)
    models = folder / "models"
    models.mkdir()
    for name in ("rover_arm", "servicer", "two_handed_spacecraft", "crane_car"):
        bodies = getattr(cc.robots, name)().bodies
        cc.Mechanism(name, bodies, gravity=(0, 0, -1)).save(models / f"{name}.xml")
    return {
        "mjcf": Kind(tuple(sorted(models.glob("*.xml"))), robot),
        **plain,
        "certificate": Kind(tuple(sorted(proofs.glob("*.json"))), certificate, sealed),
        "task proof": Kind((shutil.copy(PROOF, proofs / PROOF.name),), task_proof, sealed_task),
        "tube": Kind(tuple(sorted(tubes.glob("*.json"))), about(flyer), sealed),
        "operating box": Kind(tuple(sorted(boxes.glob("*.json"))), about(rover), sealed),
        **urdf_kinds(folder / "urdf"),
        "run": Kind((ran / "run.h5",), result, mutate=mutated_hdf5),
        "campaign": Kind((ran / "campaign.h5",), result, mutate=mutated_hdf5),
        "answer": Kind((ran / "run.json", ran / "audit.json"), result),
        "samples": Kind(_samples(folder / "samples"), samples),
        "record": Kind((run / "manifest.json", run / ROWS_FILE), record),
    }


def _is_task(path: Path) -> bool:
    return "outputs" in tomllib.loads(path.read_text("utf-8"))


def _results(folder: Path, examples: Path) -> Path:
    """Save a run and a campaign, and answers about a run and an audit."""
    folder.mkdir()
    text = (examples / "rover_campaign.toml").read_text("utf-8")
    for name, time in (("duration", 0.04), ("within|after|evaluate_after", 0.01)):
        text = re.sub(rf"(?m)^({name}) = .*", rf"\1 = {time}", text)
    (examples / "short_campaign.toml").write_text(text, "utf-8")
    made = cc.load_task(examples / "short_campaign.toml")
    run = made.simulate()
    run.save(folder / "run.h5")
    cc.verify(made, samples=2).save(folder / "campaign.h5")
    cc.load_result(folder / "run.h5").save(folder / "run.json")
    made.servo.model.audit(made.outputs).save(folder / "audit.json")
    return folder


def _samples(folder: Path) -> tuple[Path, ...]:
    """Samples of a motion as text and as arrays."""
    folder.mkdir()
    t = np.arange(0.0, 0.4, 0.01)
    rows = np.column_stack([t, np.sin(t), np.cos(t)])
    np.savetxt(folder / "named.csv", rows, "%.9f", ",", header="t,x,y", comments="")
    np.savetxt(folder / "bare.txt", rows, "%.9f")
    np.save(folder / "rows.npy", rows)
    np.savez_compressed(folder / "named.npz", t=t, x=rows[:, 1], y=rows[:, 2])
    return tuple(sorted(folder.iterdir()))


def _record(folder: Path) -> Path:
    folder.mkdir()
    made = make_rig(folder)
    layout = layout_of_rig(made)
    manifest = make_manifest(made, layout, task_and_servo()[1], mode="mock")
    manifest["end"] = {"reason": "done", "rows": 40, "lost": 0, "unwritten": 0}
    write_json(folder / "manifest.json", manifest)
    write_rows(folder, layout, (0, numbered(layout, 0, 40)))
    return folder


def fuzz_files(folder: Path, count: int, seed: int, only: str = "") -> Iterator[Fault]:
    """Read mutated files of every kind in turn.

    Parameters
    ----------
    folder : Path
        An empty folder.
    count : int
        How many.
    seed : int
        Of the mutations: file k is the same whatever the count.
    only : str
        The only kind; all if empty.

    Yields
    ------
    Fault
        One for each file that did not end in a result or an error of ours.
    """
    known = urdf_kinds(folder / "urdf") if only in ("urdf", "sidecar", "xacro") else kinds(folder)
    names = [only] if only else list(known)
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name = names[number % len(names)]
        kind = known[name]
        sample = rng.choice(kind.samples)
        sound = sample.read_bytes()
        data = kind.mutate(sound, rng)
        if kind.sealed is not None and rng.random() < 0.7:
            data = kind.sealed(data)
        # Records are read by the names of their files.
        path = sample if name == "record" else sample.with_name(f"fuzzed{sample.suffix}")
        path.write_bytes(data)
        try:
            fault = watch(f"{name} {number} ({sample.name})", lambda p=path, k=kind: k.read(p))
        finally:
            if path == sample:
                path.write_bytes(sound)
        if fault is not None:
            yield fault
