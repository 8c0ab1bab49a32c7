"""Examples of docstrings run: those of all names that docs/api.md lists."""

from __future__ import annotations

import doctest
import importlib
import re

import pytest

import concur
from hil.drives import _registry
from tests.house.test_docs import ROOT, is_own

PAGE = (ROOT / "docs/api.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^- `((?:concur|hil)\.[\w.]+)`", PAGE, re.MULTILINE)
SKIPPED = {"concur.proofs.largest_factor": "several proofs of an undecided task take minutes"}
"""Names whose example does not run, with the reason."""
LONG = {
    *("concur.PassiveServo", "concur.certified_gains", "concur.campaign.cluster"),
    *("concur.proofs.prove_task", "concur.proofs.TaskProof", "concur.checker.load_task_proof"),
    "concur.checker.confirmed",
    *("hil.Result", "hil.Outcome", "hil.Controller", "hil.Record", "hil.write_report"),
    *("hil.EmulatorProcesses", "hil.run_session", "concur.design_gains"),
    *("concur.proofs.Sampled", "concur.proofs.sample_statement"),
    *("concur.campaign.worst_searches", "concur.campaign.sampled_curves"),
    *("concur.certify.Certificate", "concur.certify.operating_bounds"),
    *("concur.certify.CertifiedGains", "concur.planning.LoopPlan", "concur.planning.plan_loop"),
    *("concur.reduction.LevelSet", "concur.control.linear_loop"),
    *("concur.simulation.forced_motion", "concur.simulation.Comparison"),
    *("concur.plan", "concur.planning.MotionPlan", "concur.io.plan_task"),
    "concur.campaign.Campaign",
}
"""Names whose example takes more than half a second."""


def found(path):
    """What a dotted name stands for."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        owner, _, part = module.rpartition(".")
        return getattr(getattr(importlib.import_module(owner), part), name)


def example(path):
    """The example of a name."""
    finder = doctest.DocTestFinder(recurse=False)
    (made,) = finder.find(found(path), path)[:1] or (None,)
    return made if made is not None and made.examples else None


OWN = [path for path in LISTED if is_own(found(path))]
EXAMPLES = {path: made for path in OWN if (made := example(path))}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.extended) if p in LONG else p for p in EXAMPLES],
)
def test_example_runs(path, beside_examples, monkeypatch):
    monkeypatch.setattr(_registry, "_KINDS", dict(_registry._KINDS))
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(EXAMPLES[path], out=said.append)
    assert not said, "".join(said)


def test_every_name_has_an_example_that_runs():
    bare = [path for path in OWN if path not in EXAMPLES]
    assert not bare, f"an example is missing: {bare}"
    skipped = {
        path
        for path, made in EXAMPLES.items()
        if any(doctest.SKIP in line.options for line in made.examples)
    }
    assert skipped == set(SKIPPED)
    assert set(EXAMPLES) >= LONG


def test_examples_use_names_that_one_import_finds():
    """`import concur as cc` imports no subpackage that is not among the public names."""
    wrong = {
        path: name
        for path, made in EXAMPLES.items()
        for line in made.examples
        for name in re.findall(r"\bcc\.([a-z_]\w*)", line.source)
        if name not in concur.__all__
    }
    assert not wrong
