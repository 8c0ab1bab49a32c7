"""What is changed, and which tests see it: groups of modules, with tests for each module.

The tests of `package/folder/_name.py` are `tests/folder/test_name*.py` by the mirrored layout;
the other files are named here. They run in this order, so the quick ones stand first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GROUPS: dict[str, tuple[str, ...]] = {
    "certify": ("concur/certify/*.py",),
    "guard": ("hil/guard.py", "hil/_limits.py", "hil/_torque.py"),
    "latch": ("hil/latch.py",),
    "controller": ("hil/controller/_[!e]*.py",),
    "exchange": ("hil/controller/_exchange.py",),
    "estimator": ("hil/state/*.py",),
    "law": ("concur/control/_law.py", "concur/control/_loop.py"),
    "kinds of laws": ("concur/control/_kinds.py", "concur/control/_own_law.py"),
    "singularity": ("concur/control/_singularit*.py",),
    "audit": ("concur/reduction/_audit.py",),
    "constants": ("concur/reduction/_search.py", "concur/reduction/_conservation.py"),
    "findings": ("concur/simulation/_findings.py",),
    "loop": (
        "concur/simulation/_adaptive.py",
        "concur/simulation/_loop.py",
        "concur/simulation/_program.py",
        "concur/simulation/_driver.py",
        "concur/simulation/_grid.py",
    ),
    "limits": (
        "concur/control/_limited.py",
        "concur/control/_constraint_rows.py",
        "concur/control/_barriers.py",
        "concur/control/_holding.py",
    ),
    "code": (
        "concur/codegen/_[ae]*.py",
        "concur/codegen/_cache.py",
        "concur/codegen/_library.py",
        "concur/codegen/_rollout*.py",
        "concur/codegen/_series.py",
        "concur/codegen/_random.py",
    ),
    "export": ("concur/export/*.py",),
    "references": ("concur/outputs/references/*.py", "concur/outputs/_sample.py"),
    "inverse kinematics": (
        "concur/control/_inverse_kinematics*.py",
        "concur/control/_feasibility.py",
        "concur/control/_start.py",
    ),
    "planning": ("concur/planning/*.py",),
    "tables": ("concur/tables/*.py",),
    "campaigns": tuple(
        f"concur/campaign/_{name}.py"
        for name in ("answers", "intervals", "laws", "result", "verify", "store", "executors")
    ),
    "proofs": (
        "concur/proofs/_[c-e]*.py",
        "concur/proofs/_ground.py",
        "concur/proofs/_heading.py",
        "concur/proofs/_imperfections.py",
        "concur/proofs/_mo*.py",
        "concur/proofs/_prove.py",
        "concur/proofs/_quantities.py",
        "concur/proofs/_readings.py",
        "concur/proofs/_wheeled.py",
        "concur/proofs/_apart.py",
    ),
    "proofs of floaters": (
        "concur/proofs/_base*.py",
        "concur/proofs/_float*.py",
        "concur/proofs/_linear_solve.py",
        "concur/proofs/_variations.py",
        "concur/proofs/_within.py",
    ),
    "checker": (
        "concur/proofs/_recheck.py",
        *(
            f"concur/proofs/_recheck_{name}*.py"
            for name in ("[ac-e]", "form", "g", "l", "m", "r", "s")
        ),
        "concur/checker/*.py",
    ),
    "checker of floaters": (
        "concur/proofs/_recheck_b*.py",
        "concur/proofs/_recheck_fl*.py",
        *(f"concur/proofs/_recheck_{name}*.py" for name in ("p", "t", "wr")),
    ),
    "pages": ("concur/show/charts.py", "concur/show/page.py", "concur/show/report.py"),
    "rolling": ("concur/robot/_rows.py", "concur/robot/_contact.py"),
}
"""Modules of each group, as patterns below the root."""

_PROOFS = ("certify/test_widenings.py", "certify/test_prove.py", "certify/test_soundness.py")
_RUNS = tuple(
    f"hil/test_{name}.py"
    for name in ("controller", "lateness", "listening", "faults", "accidents", "runs")
)
_LIMITS = ("control/test_margins_reported.py", "control/test_guards.py")
_LOOPS = tuple(
    f"simulation/test_{name}.py"
    for name in (
        "rover",
        "bad_input",
        "imperfect_run",
        "program",
        "friction",
        "one_joint",
        "joint_limits",
    )
)
_FLOATERS = ("proofs/test_floater.py", "proofs/test_floater_masses.py")
_FLIERS = ("proofs/test_recheck_floater.py",)
_ADDED = ("proofs/test_recheck_added.py",)
EXTRAS: dict[str, tuple[str, ...]] = {
    "concur/certify/": _PROOFS,
    "concur/certify/_decay": (
        "certify/test_robust*.py",
        "certify/test_recheck_tube.py",
        "cli/test_certify.py",
        *_PROOFS,
    ),
    "concur/certify/_effort": ("certify/test_design.py", *_PROOFS),
    "concur/certify/_operating": (
        "certify/test_widenings.py",
        "certify/test_operating*.py",
        "cli/test_certify_operating.py",
    ),
    "concur/certify/_inequality": ("certify/test_prove_poses.py", *_PROOFS),
    "concur/certify/_narrow": ("certify/test_robust_narrow.py", *_PROOFS),
    "concur/certify/_problem": ("certify/test_search.py", *_PROOFS),
    "concur/certify/_recheck": ("certify/test_recheck*.py", "certify/test_widenings.py"),
    "concur/certify/_reduction": ("certify/test_prove_poses.py", *_PROOFS),
    "concur/certify/_affine_form": ("certify/test_prove*.py", *_PROOFS),
    "concur/certify/_region": ("certify/test_suprema.py", "certify/test_thesis.py", *_PROOFS),
    "concur/certify/_search": ("certify/test_certificate_calmer.py", *_PROOFS),
    "concur/certify/_certificate": ("cli/test_certify.py", *_PROOFS),
    "concur/certify/_certify": ("certify/test_certificate*.py", "cli/test_certify.py", *_PROOFS),
    "concur/certify/_channel_certificate": ("certify/test_certificate*.py", *_PROOFS),
    "concur/certify/_channels": ("certify/test_region.py", "certify/test_robust.py", *_PROOFS),
    "concur/certify/_disturbance": ("certify/test_robust*.py", *_PROOFS),
    "concur/certify/_tube": ("certify/test_robust*.py", "certify/test_recheck_tube.py", *_PROOFS),
    "concur/show/charts": ("show/test_runs.py", "show/test_claims.py"),
    "concur/show/": ("show/test_page.py",),
    "concur/tables/": (
        "tables/test_build.py",
        "io/test_robot.py",
        "io/test_task.py",
        "io/test_hostile_files.py",
    ),
    "concur/campaign/_laws": ("campaign/test_laws.py",),
    "concur/campaign/": (
        "campaign/test_answers.py",
        "campaign/test_executors.py",
        "campaign/test_store.py",
    ),
    "concur/control/_law": (
        "control/test_tick.py",
        "control/test_damping.py",
        "control/test_case_study.py",
        "outputs/test_groups.py",
        "control/test_redundancy.py",
        "control/test_floating_law.py",
        "control/test_limits.py",
        "control/test_attitudes.py",
        "control/test_watch.py",
        *_LIMITS,
    ),
    "concur/control/_kinds": ("io/test_law_table.py", "simulation/test_one_joint.py"),
    "concur/control/_own_law": ("control/test_own_law.py", "control/test_laws.py"),
    "concur/control/_loop": (
        "control/test_design.py",
        "export/test_iosystem.py",
        "control/test_loop*.py",
    ),
    "concur/control/_singularit": (
        "control/test_singularities.py",
        "control/test_watch.py",
        *_LIMITS,
    ),
    "concur/control/_constraint_rows": (
        "control/test_constraint_rows.py",
        "control/test_constraints.py",
    ),
    "concur/control/_barriers": (
        "control/test_constraint_rows.py",
        "control/test_constraints.py",
    ),
    "concur/control/_holding": ("control/test_constraints.py",),
    "concur/control/_limited": (
        "control/test_limits.py",
        "control/test_constraints.py",
        "codegen/test_qp.py",
        *_LIMITS,
    ),
    "concur/codegen/_cache": (
        "codegen/test_private_cache.py",
        "codegen/test_compiler.py",
        "codegen/test_fingerprint.py",
    ),
    "concur/codegen/_library": ("codegen/test_compiler.py", "codegen/test_fingerprint.py"),
    "concur/codegen/_rollout": ("codegen/test_rollout.py", "codegen/test_lanes.py"),
    "concur/codegen/_series": (
        "codegen/test_rollout.py",
        "simulation/test_rover.py",
        "simulation/test_bad_input.py",
    ),
    "concur/codegen/_random": ("codegen/test_rollout.py",),
    "concur/codegen/": ("codegen/test_evaluated.py", "codegen/test_threads.py"),
    "concur/export/_c": ("export/test_c_export*.py", "export/test_exported_*.py"),
    "concur/export/_states": ("export/test_c_export*.py", "export/test_exported_*.py"),
    "concur/export/_iosystem": ("export/test_iosystem.py",),
    "concur/export/": ("export/test_fmu*.py", "export/test_exported_*.py"),
    "concur/outputs/": ("outputs/test_references.py", "outputs/test_table.py"),
    "concur/control/_inverse_kinematics": ("control/test_inverse_kinematics.py",),
    "concur/control/_feasibility": ("control/test_start.py", "control/test_units.py"),
    "concur/control/_start": ("control/test_start.py", "grid/test_grid.py"),
    "concur/planning/": (
        *("planning/test_phase.py", "planning/test_plan_loop.py"),
        "planning/test_plan.py",
    ),
    "concur/reduction/_audit": (
        "control/test_audit*.py",
        "reduction/test_audit_thresholds.py",
        "reduction/test_irregular.py",
    ),
    "concur/reduction/": (
        "reduction/test_search.py",
        "reduction/test_conservation.py",
        "reduction/test_symmetry*.py",
        "reduction/test_stage*.py",
        "reduction/test_reduce.py",
    ),
    "concur/simulation/_adaptive": _LOOPS,
    "concur/simulation/_loop": _LOOPS,
    "concur/simulation/_program": _LOOPS,
    "concur/simulation/_driver": (*_LOOPS, "simulation/test_knots.py"),
    "concur/simulation/_grid": ("simulation/test_knots.py",),
    "concur/simulation/_findings": ("simulation/test_stage_findings.py", "control/test_units.py"),
    "concur/robot/": (
        "robot/test_wheel_rows.py",
        "reduction/test_irregular.py",
        "robot/test_rolling_balls.py",
        "reduction/test_rover.py",
    ),
    "concur/proofs/": ("proofs/test_quantities.py", "proofs/test_prove.py"),
    "concur/proofs/_apart": ("proofs/test_clearance.py",),
    "concur/proofs/_base": _FLOATERS,
    "concur/proofs/_carried": ("proofs/test_ground.py",),
    "concur/proofs/_float": _FLOATERS,
    "concur/proofs/_imperfections": (
        "proofs/test_quantities.py",
        "proofs/test_prove.py",
        "proofs/test_jumps.py",
        "proofs/test_reading.py",
    ),
    "concur/proofs/_linear_solve": _FLOATERS,
    "concur/proofs/_prove": ("proofs/test_jumps.py",),
    "concur/proofs/_readings": ("proofs/test_reading.py",),
    "concur/proofs/_recheck": ("proofs/test_recheck.py", "checker/test_recheck.py"),
    "concur/proofs/_recheck_apart": _ADDED,
    "concur/proofs/_recheck_balls": _FLIERS,
    "concur/proofs/_recheck_fli": _FLIERS,
    "concur/proofs/_recheck_floater": _FLIERS,
    "concur/proofs/_recheck_formula": _ADDED,
    "concur/proofs/_recheck_ground": _ADDED,
    "concur/proofs/_recheck_pieces": _FLIERS,
    "concur/proofs/_recheck_poses": _FLIERS,
    "concur/proofs/_recheck_reading": _ADDED,
    "concur/proofs/_recheck_tube": _FLIERS,
    "concur/proofs/_recheck_wrenches": _FLIERS,
    "concur/proofs/_variations": _FLOATERS,
    "concur/proofs/_within": _FLOATERS,
    "concur/checker/": ("checker/test_recheck.py",),
    "hil/": ("hil/test_guard.py", "hil/test_latch.py"),
    "hil/state/": (
        "hil/state/test_differentiation*.py",
        "hil/state/test_reconstruction*.py",
        "hil/state/test_estimator*.py",
        "hil/state/test_pose_source*.py",
        "hil/test_doubted_poses.py",
    ),
    "hil/controller/": ("hil/test_controller*.py", *_RUNS),
    "hil/_punctuality": ("hil/test_lateness.py", *_RUNS),
    "hil/_torque": ("hil/test_guard.py", "hil/test_replay.py", *_RUNS),
    "hil/controller/_exchange": ("hil/test_exchange*.py", "hil/drives/test_standards.py", *_RUNS),
}
"""Tests beside the mirrored ones, for modules whose path begins so; the longest prefix counts."""


def modules(root: Path, group: str, groups: Mapping[str, tuple[str, ...]] = GROUPS) -> list[str]:
    """Return the modules of a group that have code, as paths below the root."""
    found = {path for pattern in groups[group] for path in root.glob(pattern)}
    return sorted(str(p.relative_to(root)) for p in found if p.name != "__init__.py")


def files_for(root: Path, module: str) -> list[str]:
    """Return the test files that see a module, those of margins and the mirrored ones first."""
    path = Path(module)
    folder = path.parent.relative_to("concur") if module.startswith("concur") else path.parent
    patterns = [f"{folder}/test_{path.stem.lstrip('_')}*.py"]
    prefixes = [prefix for prefix in EXTRAS if module.startswith(prefix)]
    patterns += EXTRAS[max(prefixes, key=len)]
    tests = root / "tests"
    # Tests of margins are quick, and written for what is changed here.
    files = [f for pattern in patterns for f in sorted(tests.glob(pattern))]
    files.sort(key=lambda f: "margins" not in f.name)
    return list(dict.fromkeys(str(f.relative_to(root)) for f in files))
