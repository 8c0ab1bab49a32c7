"""What makes runs in one process quick: tasks are read once, and a bus in memory costs little."""

import dataclasses
import gc
import os
import pickle
import types
from pathlib import Path

import can
import pytest
from can.interfaces.virtual import VirtualBus

from concur.codegen import Evaluator, fingerprint
from concur.errors import ConcurError
from concur.files import read_bytes
from hil import _realtime
from hil.cli import _replay, _run
from hil.emulator import _plant
from hil.rig import _load
from hil.state import estimator

_READ = _load.load_task
_TASKS = {}


def _moved(task, path):
    """Files of a task, by the names that they have beside the copy of the task at a path."""
    names = {name: os.path.relpath(name, task.path.parent) for name in task.source.files}
    return {
        os.path.normpath(path.parent / names[name]): content
        for name, content in task.source.files.items()
    }


def _is_same(files):
    """Whether files have a content; they are read as those of strangers' records, confined."""
    try:
        return all(read_bytes(Path(name), "a file", "") == text for name, text in files.items())
    except ConcurError:
        return False


def _task(path):
    """Hand out one task for each file; copies of all its files share what was built of it."""
    path = Path(path)
    for known in _TASKS.get(path.name, ()):
        files = _moved(known, path)
        if not _is_same(files):
            continue
        if path == known.path:
            return known
        source = dataclasses.replace(known.source, path=path, files=files)
        copy = dataclasses.replace(known, path=path, source=source)
        if "servo" in vars(known):
            vars(copy)["servo"] = known.servo
        return copy
    task = _READ(path)
    if task.law_file is None and {Path(name).suffix for name in task.source.files} == {".toml"}:
        _TASKS.setdefault(path.name, []).append(task)
    return task


@pytest.fixture(scope="session", autouse=True)
def tasks_read_once():
    """Tasks do not change: rigs of one process share them, with their laws."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_load, "load_task", _task)
        yield


_STEP = _plant._step
_STEPS = {}


def _step(plant):
    """Share the graph of a plant; each emulated robot has its own buffers."""
    if os.environ.get("CONCUR_CC") != "none":
        return _STEP(plant)
    key = fingerprint("", plant)
    if key not in _STEPS:
        _STEPS[key] = _STEP(plant).function
    return Evaluator(_STEPS[key], [(plant.nq,), (plant.nv,)], f"step of `{plant.name}`")


@pytest.fixture(scope="session", autouse=True)
def plants_built_once():
    """Emulated robots of one process share the graphs of equal plants."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_plant, "_step", _step)
        yield


_GRAPHS = {}
_MAKE_GRAPHS = estimator.make_graphs


def _graphs(model, *settings):
    """Share the graphs of an estimator; each one has its own buffers."""
    key = fingerprint("", model), pickle.dumps(settings)
    if os.environ.get("CONCUR_CC") != "none" or key[0] is None:
        return _MAKE_GRAPHS(model, *settings)
    if key not in _GRAPHS:
        _GRAPHS[key] = _MAKE_GRAPHS(model, *settings)
    made = (vars(_GRAPHS[key])[field.name] for field in dataclasses.fields(_GRAPHS[key]))
    return type(_GRAPHS[key])(*[part and part.copy() for part in made])


@pytest.fixture(scope="session", autouse=True)
def estimators_built_once():
    """Estimators of one process share their graphs, and runs leave old objects uncollected."""
    young = types.SimpleNamespace(**vars(gc) | {"collect": lambda: gc.collect(0)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimator, "make_graphs", _graphs)
        patch.setattr(_realtime, "gc", young)
        yield


_RECEIVE = VirtualBus._recv_internal
_FIELDS = [name for name in can.Message.__slots__ if name != "__weakref__"]


def _receive(bus, timeout):
    """Take what waits, or tell that nothing does, without the locks of a queue."""
    if timeout == 0 and bus._open:
        waiting = bus.queue.queue
        return (waiting.popleft() if waiting else None), False
    return _RECEIVE(bus, timeout)


def _copied(frame, _):
    """Copy a frame without checking its fields again."""
    copy = object.__new__(can.Message)
    for name in _FIELDS:
        setattr(copy, name, getattr(frame, name))
    copy.data = bytearray(frame.data)
    return copy


@pytest.fixture(scope="session", autouse=True)
def quick_bus():
    """Emulated rigs exchange thousands of frames within a process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VirtualBus, "_recv_internal", _receive)
        patch.setattr(can.Message, "__deepcopy__", _copied)
        yield


@pytest.fixture
def coarse(monkeypatch):
    """Figures of fewer pixels, for speed."""
    monkeypatch.setattr("concur.show.style.DPI", 30)


@pytest.fixture
def unreported(monkeypatch):
    """Leave out report and figures; one run and one replay of test_cli.py have them."""
    for module in (_run, _replay):
        monkeypatch.setattr(module, "write_report", lambda _, folder, **__: folder / "report.html")
