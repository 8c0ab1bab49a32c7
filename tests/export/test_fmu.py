"""Units for co-simulation of a model whose motion is known: descriptions, modes, states, bytes."""

import re
import subprocess
from pathlib import Path

import casadi as ca
import fmpy
import numpy as np
import pytest
from fmpy.build import build_platform_binary
from fmpy.validation import validate_fmu

from concur.codegen import CompilationError, CompilerWarning, find_compiler
from concur.export import Entry, FmuModel, Signal, write_fmu
from concur.simulation._step import runge_kutta
from tests.export._units import (
    DISCARD,
    ERROR,
    OK,
    VERSIONS,
    WARNING,
    Unit,
    unpacked,
    with_compiler,
)

HEADERS = Path(fmpy.__file__).parent / "c-code"
METRES, POINT = (Entry("", "m"),), (Entry("first", "m"), Entry("second", "m"))
RATE = np.array([[-0.1, 2.0], [-2.0, -0.1]])


def spiral():
    """Two numbers that turn and decay, pushed by an input; the start has to be within 10."""
    x, x0, push = ca.SX.sym("x", 2), ca.SX.sym("x0", 2), ca.SX.sym("push")
    names, h = {"allow_duplicate_io_names": True}, ca.SX.sym("h")
    moved = runge_kutta(lambda _, x: [RATE @ x + push * ca.DM([1, 0])], [x], h)
    return FmuModel(
        name="a spiral",
        description='A spiral with "marks" & <signs>.',
        signals=[
            Signal("x", "output", "point", POINT),
            Signal("length", "output", "distance from the middle", METRES, scalar=True),
            Signal("x0", "parameter", "start", POINT, (1.0, 0.5)),
            Signal("push", "input", "push", (Entry("", "m/s"),), scalar=True),
        ],
        state=("x",),
        outputs=ca.Function("outputs", [x], [ca.norm_2(x)], ["x"], ["length"]),
        initial=ca.Function("initial", [x0], [x0, ca.norm_2(x0) <= 10], ["x0"], ["x", "sound"]),
        move=ca.Function("move", [x, push, h], moved, ["x", "push", "h"], ["x"], names),
        unsound="they are too large.",
        step_size=0.01,
    )


def root():
    """A root without a state, whose status shows whether it exists; of a unit that SI derives."""
    x = ca.SX.sym("x")
    return FmuModel(
        name="root",
        description="A root.",
        signals=[
            Signal("x", "input", "number", (Entry("", "V"),), (4.0,), scalar=True),
            Signal("y", "output", "its root", scalar=True),
            Signal("status", "output", "whether it does not exist", scalar=True, integer=True),
        ],
        outputs=ca.Function(
            "outputs",
            [x],
            [ca.sqrt(ca.fmax(x, 0)), ca.if_else(x >= 0, 0, 1)],
            ["x"],
            ["y", "status"],
        ),
        messages=("It is the root.", "There is no root: 100% sure."),
    )


def exact(t, x0, push=0.0):
    """The spiral in closed form."""
    decay, turn = np.exp(-0.1 * t), 2.0 * t
    turned = decay * np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    rest = -np.linalg.solve(RATE, [push, 0.0])
    return rest + turned @ (np.asarray(x0) - rest)


@pytest.fixture(scope="module", params=VERSIONS)
def folder(request, tmp_path_factory):
    target = tmp_path_factory.mktemp("units")
    with with_compiler():
        for model in (spiral(), root()):
            write_fmu(model, target, request.param)
    return target


@pytest.fixture
def unit(folder):
    unit = Unit(folder / "a_spiral.fmu")
    yield unit
    unit.close()


@pytest.fixture
def static(folder):
    unit = Unit(folder / "root.fmu")
    yield unit
    unit.close()


def called(*words, **options):
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.by_default(1)
def test_binary_has_every_function_of_the_standard_and_shows_nothing_else(folder, tmp_path):
    (library,) = unpacked(folder / "a_spiral.fmu").glob("binaries/*/*.so")
    version = Unit(folder / "a_spiral.fmu").description.fmiVersion[0]
    header = (HEADERS / f"fmi{version}Functions.h").read_text(encoding="utf-8")
    expected = set(re.findall(rf"^#define (fmi{version}\w+) +fmi", header, re.MULTILINE))
    expected -= {f"fmi{version}FullName"}
    assert len(expected) > 40
    shown = called("nm", "-D", "--defined-only", library).splitlines()
    assert {line.split()[-1] for line in shown} == expected
    # With a prefix, where one is defined.
    source = unpacked(folder / "root.fmu") / "sources" / "fmi.c"
    defined = f"-DFMI{version}_FUNCTION_PREFIX=root_"
    called("gcc", "-std=c99", defined, "-c", source, "-o", tmp_path / "prefix.o")
    shown = called("nm", "-g", "--defined-only", tmp_path / "prefix.o").splitlines()
    assert {line.split()[-1] for line in shown} == {f"root_{name}" for name in expected}


def test_description_tells_entries_and_what_starts_depend_on(folder):
    """The step of the integration changes no output at the start."""
    unit = Unit(folder / "a_spiral.fmu")
    known = {variable.name: variable for variable in unit.description.modelVariables}
    single = unit.description.fmiVersion == "2.0"
    starts = {"x0[1]", "x0[2]"} if single else {"x0"}
    first = unit.description.initialUnknowns[0]
    assert {variable.name for variable in first.dependencies} == starts
    text = "Point. Entry: first." if single else "Point. Entries: first, second."
    assert known["x[1]" if single else "x"].description == text
    unit.close()


@pytest.mark.parametrize("name", ["a_spiral", "root"])
def test_sources_compile_without_warnings(folder, name, tmp_path):
    sources = sorted((unpacked(folder / f"{name}.fmu") / "sources").glob("*.c"))
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O1"]
    called("gcc", *strict, "-c", *sources, cwd=tmp_path)


@pytest.mark.parametrize("model", [spiral, root])
def test_random_calls_misuse_no_memory(model, tmp_path):
    sources = unpacked(write_fmu(model(), tmp_path, binary=False)) / "sources"
    code = [Path(__file__).with_name("fmu_calls.c")]
    code += [path for path in sources.glob("*.c") if path.name != "fmi.c"]
    sanitized = ["-std=c99", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    called("gcc", *sanitized, f"-I{sources}", *code, "-lm", "-o", tmp_path / "calls")
    messages, calls, steps = map(int, called(tmp_path / "calls").split())
    # Many calls were refused, with a message each, and many were not.
    assert min(messages, calls) > 5000
    assert steps > 50


@pytest.mark.extended
def test_same_model_gives_the_same_bytes_and_another_one_another_token(tmp_path):
    with with_compiler():
        paths = [write_fmu(root(), tmp_path / str(k)) for k in range(2)]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    paths.append(write_fmu(spiral(), tmp_path, binary=False))
    described = [fmpy.read_model_description(str(path)) for path in paths]
    assert len({(d.instantiationToken, d.guid) for d in described}) == 2


@pytest.mark.extended
@pytest.mark.parametrize("version", ["3.0", pytest.param("2.0", marks=pytest.mark.slow)])
def test_tools_build_binaries_from_the_sources(version, tmp_path):
    path = write_fmu(spiral(), tmp_path, version, binary=False)
    assert not list(unpacked(path).glob("binaries/*"))
    (tmp_path / "build").mkdir()
    build_platform_binary(unpacked(path), tmp_path / "build", all_warnings=True)
    unit = Unit(path)
    unit.start(x0=[1.0, 0.0])
    unit.step(0.1)
    np.testing.assert_allclose(unit.get("x"), exact(0.1, [1.0, 0.0]), atol=1e-8)
    unit.close()


@pytest.mark.usefixtures("compiler")
def test_a_failed_compilation_is_told_by_its_first_error(tmp_path):
    (tmp_path / "bad.c").write_text("int f(void) { return lost; }\nint g(void) { return gone; }\n")
    with pytest.raises(CompilationError, match=r"bad\.c:1:\d+: error: .*lost"):
        find_compiler().run(["-c", "bad.c"], tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_compiler_there_are_sources_only_and_it_is_said(version, tmp_path, monkeypatch):
    monkeypatch.setenv("CONCUR_CC", "none")
    for model in (root(), spiral()):
        with pytest.warns(CompilerWarning, match="sources only: no C compiler"):
            path = write_fmu(model, tmp_path, version)
        assert validate_fmu(str(path)) == []
        assert not list(unpacked(path).glob("binaries/*"))
        sources = {file.name for file in unpacked(path).glob("sources/*.c")}
        assert sources
        # Tools build what the unit lists.
        listed = "".join(file.read_text("utf-8") for file in unpacked(path).glob("**/*.xml"))
        assert set(re.findall(r'<(?:Source)?File name="([^"]+)"', listed)) == sources


# --- motion ---------------------------------------------------------------------------------------


def test_motion_is_the_one_in_closed_form(unit):
    unit.enter()
    for start in ([3.0, 4.0], [0.3, -2.0]):  # outputs follow the parameters
        unit.set(x0=start)
        np.testing.assert_array_equal(unit.get("x"), start)
        np.testing.assert_allclose(unit.get("length"), np.linalg.norm(start), rtol=1e-15)
    unit.fmu.exitInitializationMode()
    for k in range(1, 101):
        assert unit.step(0.02) == OK
        np.testing.assert_allclose(unit.get("time"), [0.02 * k], rtol=1e-12)
    np.testing.assert_allclose(unit.get("x"), exact(2.0, [0.3, -2.0]), atol=2e-8)
    unit.set(push=1.5)
    reached = unit.get("x")
    assert unit.step(0.5) == OK
    np.testing.assert_allclose(unit.get("x"), exact(0.5, reached, 1.5), atol=2e-8)


def test_steps_are_cut_into_equal_parts(unit):
    cases = [(0.005, 1), (0.01, 1), (0.025, 3), (0.1, 10), (1.0, 100)]
    for h, parts, *own in (*cases, (0.5, 1, 0.5), (0.5, 2, 0.499)):
        unit.start(x0=[1.0, 0.0], step_size=own[0] if own else 0.01)
        assert unit.step(h) == OK
        a = RATE * h / parts
        once = np.eye(2) + a + a @ a / 2 + a @ a @ a / 6 + a @ a @ a @ a / 24
        expected = np.linalg.matrix_power(once, parts) @ [1.0, 0.0]
        np.testing.assert_allclose(unit.get("x"), expected, rtol=1e-13, atol=1e-14)
        unit.fmu.terminate()
        unit.fmu.reset()


def test_starts_that_cannot_be_are_refused_and_can_be_mended(unit):
    unit.enter()
    for start in ([8.0, 7.0], [np.nan, 0.0], [np.inf, 0.0]):
        unit.set(x0=start)
        assert unit.refused(unit.get, "length")
        assert unit.refused(unit.fmu.exitInitializationMode)
        assert unit.messages[-1] == (ERROR, "The start values are invalid: they are too large.")
    unit.set(x0=[1.0, 0.0])
    for step in (0.0, -0.1, np.nan, np.inf):
        unit.set(step_size=step)
        assert unit.refused(unit.fmu.exitInitializationMode)
    unit.set(step_size=0.01)
    unit.fmu.exitInitializationMode()
    assert unit.step(0.1) == OK


def test_step_that_leaves_the_finite_numbers_is_discarded(unit):
    unit.start(x0=[1.0, 0.0])
    assert unit.step(0.1) == OK
    before = unit.get("x")
    for push in (np.nan, np.inf, 1e308):
        unit.set(push=push)
        assert unit.step(1e3) == DISCARD
        assert unit.messages[-1][0] == DISCARD
        assert unit.time == pytest.approx(0.1)
        np.testing.assert_array_equal(unit.get("x"), before)
    unit.set(push=0.0)
    assert unit.step(0.1) == OK
    np.testing.assert_allclose(unit.get("x"), exact(0.2, [1.0, 0.0]), atol=1e-8)


def test_steps_that_cannot_be_are_refused(unit):
    unit.start(start=1.0, stop=2.0)
    for h, at in ((0.0, 1.0), (-0.1, 1.0), (np.nan, 1.0), (np.inf, 1.0), (0.1, 1.2), (1e9, 1.0)):
        assert unit.step(h, at) == ERROR
        np.testing.assert_array_equal(unit.get("x"), [1.0, 0.5])
    assert [unit.step(0.25) for _ in range(5)] == [OK] * 4 + [ERROR]  # beyond the stop time
    assert unit.time == pytest.approx(2.0)


def test_steps_of_too_many_parts_are_refused(unit):
    unit.start()
    assert unit.step(1e9) == ERROR
    np.testing.assert_array_equal(unit.get("x"), [1.0, 0.5])


# --- calls ----------------------------------------------------------------------------------------


def test_calls_are_allowed_in_their_modes_only(unit):
    fmu = unit.fmu
    assert unit.step(0.1) == ERROR
    assert unit.refused(unit.get, "x")
    assert unit.refused(fmu.exitInitializationMode)
    assert unit.refused(fmu.terminate)
    unit.set(x0=[2.0, 0.0], push=1.0)
    unit.enter()
    assert unit.refused(fmu.enterInitializationMode)
    assert unit.step(0.1) == ERROR
    assert unit.refused(lambda: unit.set(x=[0.0, 0.0]))
    fmu.exitInitializationMode()
    assert unit.refused(lambda: unit.set(x0=[0.0, 0.0]))
    assert unit.refused(lambda: unit.set(time=1.0))
    assert unit.step(0.1) == OK
    read, write, whole = (
        (fmu.getFloat64, fmu.setFloat64, fmu.getInt32)
        if unit.third
        else (fmu.getReal, fmu.setReal, fmu.getInteger)
    )
    assert unit.refused(read, [99])
    assert unit.refused(write, [99], [0.0])
    assert unit.refused(whole, [1])
    if unit.third:
        (x,) = unit.variables("x")
        assert unit.refused(read, [x.valueReference], 1)
        assert unit.refused(read, [x.valueReference], 3)
    fmu.terminate()
    assert unit.step(0.1) == ERROR
    assert unit.refused(lambda: unit.set(push=0.0))
    np.testing.assert_allclose(unit.get("x"), exact(0.1, [2.0, 0.0], 1.0), atol=1e-8)
    fmu.reset()
    unit.start()
    np.testing.assert_array_equal([*unit.get("x"), *unit.get("push")], [1.0, 0.5, 0.0])
    unit.step(0.3)
    np.testing.assert_allclose(unit.get("x"), exact(0.3, [1.0, 0.5]), atol=1e-8)


def test_states_are_saved_and_restored_and_go_through_bytes(unit, folder, static):
    unit.start(x0=[5.0, 0.0])
    unit.step(0.3)
    saved, there, t = unit.fmu.getFMUState(), unit.get("x"), unit.time
    write = unit.fmu.serializeFMUState if unit.third else unit.fmu.serializeFMUstate
    data = write(saved)
    unit.set(push=3.0)
    unit.step(0.3)
    once = unit.get("x")
    unit.fmu.setFMUState(saved)
    unit.time = t
    np.testing.assert_array_equal([*unit.get("x"), *unit.get("push")], [*there, 0.0])
    other = Unit(folder / "a_spiral.fmu")
    read = other.fmu.deserializeFMUState if unit.third else other.fmu.deSerializeFMUstate
    state = read(data)
    other.fmu.setFMUState(state)
    other.time = t
    for own in (unit, other):
        own.set(push=3.0)
        assert own.step(0.3) == OK
        np.testing.assert_array_equal(own.get("x"), once)
    other.fmu.freeFMUState(state)
    other.close()
    unit.fmu.freeFMUState(saved)
    strange = static.fmu.deserializeFMUState if unit.third else static.fmu.deSerializeFMUstate
    assert static.refused(strange, data)
    assert static.refused(strange, data[:-1])


def test_binary_of_another_description_is_refused(folder):
    with pytest.raises(Exception, match="instantiate"):
        Unit(folder / "root.fmu", token="{another}")


def test_outputs_without_a_state_follow_the_inputs_at_once_and_warn_once(static):
    static.start()
    np.testing.assert_array_equal(static.get("y"), [2.0])
    static.set(x=9.0)
    np.testing.assert_array_equal(static.get("y"), [3.0])
    assert static.step(0.1) == OK
    np.testing.assert_array_equal(static.get("y"), [3.0])
    static.set(x=-1.0)
    assert [static.step(0.1) for _ in range(3)] == [WARNING] * 3
    assert static.get("status") == [1]
    assert [status for status, _ in static.messages] == [WARNING]
    assert "There is no root" in static.messages[0][1] or static.messages[0][1] == "%s"
    static.set(x=1.0)
    assert static.step(0.1) == OK
    static.set(x=-1.0)
    assert static.step(0.1) == WARNING
    assert len(static.messages) == 2
