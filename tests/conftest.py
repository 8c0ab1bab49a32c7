"""Settings of every test: no screen, one thread per process, and property tests that repeat."""

import collections
import functools
import gc
import os

import pytest
from hypothesis import settings

# Read when the libraries are loaded, so they are set before any test imports NumPy: threads of
# the linear algebra would fight with the parallel test processes.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["MPLBACKEND"] = "Agg"
# Most tests call a law a few times: the interpreter is ready sooner than a compiler. Those of
# compiled code ask for it, with the fixture `compiler`.
os.environ.setdefault("CONCUR_CC", "none")

from concur import robots  # noqa: E402
from concur.codegen import EvaluatedMethods, _evaluated, fingerprint  # noqa: E402
from concur.control import _core  # noqa: E402
from concur.io import _task_parts, load_shipped  # noqa: E402

_kept = functools.cache(load_shipped)


def _shared(name):
    """Hand out one robot of a name, with the graphs it keeps, unless methods are compiled."""
    return _kept(name) if os.environ.get("CONCUR_CC") == "none" else load_shipped(name)


# Robots do not change: all tests of a process share those of the package, also in their tasks.
for _module in (robots, _task_parts):
    _module.load_shipped = _shared


_GRAPHS = collections.OrderedDict()
_MOST = 400  # objects whose graphs are kept
_MEASURED = ("tests/benchmarks/", "tests/contract/test_yardsticks.py")  # how graphs are built
_CHANGES = []  # patches of the package that hold now: graphs of such a time are shared with none


def _noting(change):
    """A method of `MonkeyPatch` that notes what it changes in the package."""

    @functools.wraps(change)
    def noted(patch, target, *arguments, **options):
        name = target if isinstance(target, str) else getattr(target, "__module__", None)
        name = name or getattr(target, "__name__", "concur")  # a dictionary may be any
        if name.startswith("concur") and not name.startswith(("concur.show", "concur.cli")):
            _CHANGES.append(patch)
        return change(patch, target, *arguments, **options)

    return noted


def _undone(patch, undo=pytest.MonkeyPatch.undo):
    """Take a patch back, also from what is noted."""
    _CHANGES[:] = [other for other in _CHANGES if other is not patch]
    undo(patch)


for _name in ("setattr", "delattr", "setitem", "delitem"):
    setattr(pytest.MonkeyPatch, _name, _noting(getattr(pytest.MonkeyPatch, _name)))
pytest.MonkeyPatch.undo = _undone


def _is_shared(owner):
    return any(vars(owner).get("_evaluators") is graphs for graphs in _GRAPHS.values())


def _share(owner):
    """Give an object the graphs of an equal one: same class, same numbers, nothing from outside."""
    kept = vars(owner)
    if _CHANGES or os.environ.get("PYTEST_CURRENT_TEST", "").startswith(_MEASURED):
        if _is_shared(owner):  # what is built now is for this object alone
            kept["_evaluators"] = dict(kept["_evaluators"])
    elif os.environ.get("CONCUR_CC") == "none" and not {"_evaluators", "_compiled"} & {*kept}:
        key = fingerprint("", owner)
        if key is not None:
            kept["_evaluators"] = _GRAPHS.setdefault(key, {})
            _GRAPHS.move_to_end(key)
            if len(_GRAPHS) > _MOST:
                _GRAPHS.popitem(last=False)


def _sharing(build, owner_of):
    """A method that builds a graph, once for all objects that are equal."""

    @functools.wraps(build)
    def graph(*arguments):
        owner = owner_of(*arguments)
        if isinstance(owner, EvaluatedMethods):
            _share(owner)
        return build(*arguments)

    return graph


def _alone(change):
    """A method that replaces graphs by machine code, of an object that shares them no longer."""

    @functools.wraps(change)
    def changed(owner, *arguments):
        if _is_shared(owner):
            vars(owner)["_evaluators"] = {}
        return change(owner, *arguments)

    return changed


_Method, LawCore = _evaluated._Method, _core.LawCore
_Method.graph = _sharing(_Method.graph, lambda method, arguments, static: arguments[0])
LawCore.graph = _sharing(LawCore.graph, lambda law: law)
EvaluatedMethods.compile_functions = _alone(EvaluatedMethods.compile_functions)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of a test marked `by_default(n)`, leave the cases after the first n to the extended tests."""
    seen = collections.Counter()
    for item in items:
        if mark := item.get_closest_marker("by_default"):
            family = item.nodeid.partition("[")[0]
            seen[family] += item.get_closest_marker("slow") is None
            if seen[family] > mark.args[0]:
                item.add_marker(pytest.mark.extended)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give all tests of a file to one process, which then makes what they share once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection():
    """Let the garbage collector skip modules and the tests themselves, which all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)  # what tests leave behind is little
        gc.enable()


@pytest.fixture
def compiler(monkeypatch, tmp_path_factory):
    """Compile in this test, and keep what is compiled for all processes of this session only."""
    monkeypatch.delenv("CONCUR_CC")
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    monkeypatch.setenv("CONCUR_CACHE", str(folder / "compiled"))


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium, for tests marked `browser`."""
    from playwright.sync_api import sync_playwright

    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--use-gl=angle",
        "--use-angle=swiftshader",
        "--enable-unsafe-swiftshader",
    ]
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as browsers:
        chromium = browsers.chromium.launch(executable_path=path, args=arguments)
        yield chromium
        chromium.close()


settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("repeatable")  # `--hypothesis-profile=search` looks further
