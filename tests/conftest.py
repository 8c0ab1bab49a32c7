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
from concur.io import _task_parts, load_shipped  # noqa: E402

_kept = functools.cache(load_shipped)


def _shared(name):
    """Hand out one robot of a name, with the graphs it keeps, unless methods are compiled."""
    return _kept(name) if os.environ.get("CONCUR_CC") == "none" else load_shipped(name)


# Robots do not change: all tests of a process share those of the package, also in their tasks.
for _module in (robots, _task_parts):
    _module.load_shipped = _shared


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
    """Compile in this test, and keep what is compiled for the rest of the session only."""
    monkeypatch.delenv("CONCUR_CC")
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path_factory.getbasetemp() / "compiled"))


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
