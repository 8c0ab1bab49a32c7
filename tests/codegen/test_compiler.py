"""Compiler and cache: results are always correct, and slow cases give a warning."""

from __future__ import annotations

import json
import os
import pickle
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from concur.codegen import CompilerWarning, Evaluator, _cache, _compiler, compiled
from concur.codegen._sources import Sources, sources
from concur.errors import ShapeError, UnknownNameError
from concur.robots import free_flyer
from tests.control._cases import case_study


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A separate cache for the test, and a process without earlier warnings."""
    monkeypatch.delenv("CONCUR_CC")
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_compiler, "_SAID", set())
    return tmp_path / "cache"


def function(factor: float = 2.0) -> ca.Function:
    x = ca.SX.sym("x", 3)
    return ca.Function("scaled", [x], [factor * x], ["x"], ["y"])


def libraries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.iterdir() if path.suffix == _cache._SUFFIX)


def scaled(factor: float) -> np.ndarray:
    made = compiled([function(factor)])
    assert made is not None
    return np.array(made.functions[0]([1.0, 2.0, 3.0]))[:, 0]


def script(path: Path, text: str) -> str:
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_second_time_comes_from_the_cache(cache: Path) -> None:
    first, second, other = compiled([function()]), compiled([function()]), compiled([function(3.0)])
    assert first is not None
    assert second is not None
    assert other is not None
    assert [first.cached, second.cached, other.cached] == [False, True, False]
    assert len(libraries(cache)) == 2
    assert not list(cache.glob("build-*"))


def test_key_knows_sources_flags_and_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, other = (sources([function(factor)]) for factor in (2.0, 3.0))
    compiler = _compiler.find_compiler()
    assert compiler is not None
    newer = _compiler.Compiler(compiler.command, compiler.identity + "1")
    keys = {compiler.key(code), compiler.key(other), newer.key(code)}
    monkeypatch.setattr(_compiler, "FLAGS", (*_compiler.FLAGS, "-g"))
    keys.add(compiler.key(code))
    assert len(keys) == 4
    assert all(len(key) == 64 for key in keys)


@pytest.mark.parametrize(("assignments", "level"), [(8_000, "-O3"), (8_001, "-O2"), (10**6, "-O2")])
def test_optimization_depends_on_the_length(
    assignments: int, level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(
        _compiler.Compiler, "run", lambda _, words, folder: commands.append(list(words))
    )
    code = Sources(("",), ("f",), assignments)
    _compiler.Compiler(("cc",), "").build(code, tmp_path / "library.so")
    assert [word for word in commands[0] if word.startswith("-O")] == [level]


def test_flags_keep_the_tests_for_nan(cache: Path) -> None:
    x = ca.SX.sym("x")
    guard = ca.Function("guard", [x], [ca.if_else(ca.fabs(x) <= 1e300, x, 7.0)])
    made = compiled([guard])
    assert made is not None
    assert [float(made.functions[0](value)) for value in (np.nan, np.inf, 2.0)] == [7.0, 7.0, 2.0]


@pytest.mark.extended
def test_damaged_entry_is_built_anew(cache: Path) -> None:
    # In a separate process each time, as this one would keep the intact library loaded.
    text = (
        "import casadi as ca; from concur.codegen import compiled; x = ca.SX.sym('x', 3)\n"
        "made = compiled([ca.Function('scaled', [x], [2 * x])])\n"
        "print(made.cached, made.functions[0]([1, 2, 3]))"
    )

    def run() -> str:
        command = [sys.executable, "-c", text]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def sealed(kept: Path) -> None:
        kept.write_bytes(b"nothing")
        _cache._seal(kept).write_text(_cache._digest(kept))

    assert run() == "False [2, 4, 6]"
    for damage in (
        lambda kept: kept.write_bytes(kept.read_bytes()[:5000]),
        lambda kept: kept.write_bytes(b""),
        lambda kept: _cache._seal(kept).unlink(),
        sealed,  # whole, but no library
    ):
        (kept,) = libraries(cache)
        damage(kept)
        assert run() == "False [2, 4, 6]"
    assert run() == "True [2, 4, 6]"


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    "damage",
    [
        {"names": [], "instructions": []},
        {"instructions": []},
        {"names": ["another"]},
        {"library": "another.so"},
    ],
    ids=str,
)
def test_damaged_note_is_written_anew(cache: Path, damage: dict[str, object]) -> None:
    servo = case_study()
    servo.compile()
    (note,) = cache.glob("*.json")
    sound = note.read_text()
    note.write_text(json.dumps(json.loads(sound) | damage))
    tick = servo.compile()
    assert tick.compiled
    assert tick.instructions > 100
    assert note.read_text() == sound


def test_killed_compile_leaves_nothing_that_is_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gcc = _compiler.find_compiler()
    assert gcc is not None
    # A compiler that ends the process that called it, in the middle of a library.
    killer = script(
        tmp_path / "killer",
        "import os, signal, sys\n"
        "if sys.argv[1] in ('--version', '-dumpmachine'): print(1); sys.exit()\n"
        "open('library.so', 'wb').write(b'half')\n"
        "os.kill(os.getppid(), signal.SIGKILL)\n",
    )
    text = (
        "import casadi as ca; from concur.codegen import compiled; x = ca.SX.sym('x', 3)\n"
        "compiled([ca.Function('scaled', [x], [2 * x], ['x'], ['y'])])"
    )
    environment = {**os.environ, "CONCUR_CC": killer}
    done = subprocess.run([sys.executable, "-c", text], env=environment, check=False)
    assert done.returncode == -9
    (left,) = cache.glob("build-*")
    assert not libraries(cache)
    assert_array_equal(scaled(2.0), [2.0, 4.0, 6.0])
    assert left.exists()  # it could be another's, at work
    os.utime(left, (0, 0))
    scaled(5.0)
    assert not left.exists()


def test_old_and_surplus_entries_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for factor in (2.0, 3.0, 4.0):
        scaled(factor)
    old, middle, new = libraries(cache)
    now = time.time()
    for path, age in ((old, 100 * 86400), (middle, 50), (new, 10)):
        os.utime(path, (now - age, now - age))
    _cache.trim(cache)
    assert libraries(cache) == sorted([middle, new])
    assert not _cache._seal(old).exists()
    monkeypatch.setattr(_cache, "KEPT_BYTES", new.stat().st_size)
    _cache.trim(cache)
    assert libraries(cache) == [new]


def test_without_a_compiler_it_is_interpreted_and_said_once(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    evaluator = Evaluator(function(), [(3,)], "scaled")
    with pytest.warns(CompilerWarning, match="No C compiler was found.*gcc or clang") as told:
        assert evaluator.compile() is None
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evaluator.compile() is None
    assert not evaluator.compiled
    assert_array_equal(evaluator([1.0, 2.0, 3.0]), [2.0, 4.0, 6.0])


def test_interpreter_on_purpose_is_silent(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCUR_CC", "none")
    assert compiled([function()]) is None


def test_what_is_wrong_with_compiler_or_cache_is_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    broken = script(
        tmp_path / "broken",
        "import sys\n"
        "if sys.argv[1] in ('--version', '-dumpmachine'): print(1); sys.exit()\n"
        "sys.exit('no space left')\n",
    )
    for name, value, told, works in (
        ("CONCUR_CC", "gcc 'open", "CONCUR_CC is .*, not a compiler", True),
        ("CONCUR_CC", " ", "CONCUR_CC is .*, not a compiler", True),
        ("CONCUR_CC", "no-such-compiler -v", "CONCUR_CC is `no-such-compiler -v`, not a", True),
        ("CONCUR_CC", broken, r"did not compile \(no space left\)", False),
        (
            "CONCUR_CACHE",
            str(tmp_path / "file" / "cache"),
            "cannot be kept in .*CONCUR_CACHE",
            True,
        ),
    ):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            with pytest.warns(CompilerWarning, match=told):
                made = compiled([function()])
            assert (made is not None) is works
            if made is not None:
                assert_array_equal(np.array(made.functions[0](1.0))[:, 0], [2.0] * 3)


@pytest.mark.extended
def test_default_is_what_is_usual_and_what_was_called(cache: Path) -> None:
    robot = free_flyer()
    robot.pose(robot.neutral(), "tool")
    assert robot.compile_functions()
    for name, *more in (("mass_matrix",), ("bias",), ("momentum",), ("pose", "tool")):
        assert getattr(type(robot), name).evaluator_for(robot, *more).compiled


def test_functions_that_do_not_exist_are_refused() -> None:
    robot = free_flyer()
    for name in ("mass", "name", "neutral", 3):
        with pytest.raises(UnknownNameError, match="mass_matrix"):
            robot.compile_functions(name)
    with pytest.raises(ShapeError, match="tool"):
        robot.compile_functions("jacobian")


def test_evaluator_compiles_itself_and_its_copies(cache: Path) -> None:
    evaluator = Evaluator(function(), [(3,)], "scaled")
    assert evaluator.compile() is not None
    assert evaluator.compiled
    again = pickle.loads(pickle.dumps(evaluator))
    assert again.compiled
    assert_array_equal(again([1.0, 2.0, 3.0]), [2.0, 4.0, 6.0])
