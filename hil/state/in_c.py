"""Numbers of the residuals of a rig for code in C, from those with which Python computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hil._c_numbers import array, number
from hil.state import _explanation as explanation
from hil.state import _residual as residual

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.settings import Rig

COLUMNS = "limit", "viscous", "dry", "losses", "share", "step", "timing"
"""Numbers of an allowance."""


def residual_sizes(rig: Rig) -> dict[str, int]:
    """Sizes of the memory of residuals and of their explanation.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    dict of str to int
        Sizes by name.
    """
    instants = explanation.INSTANTS + explanation.EARLIER + 1
    return {
        "SAMPLES": residual.samples_of(rig.loop.period),
        "RESIDUAL_RATES": len(residual.RATES),
        "INSTANTS": instants,
        "CHOSEN": explanation.NEWEST + explanation.EARLIER + 1,
        "CAUSES": instants * (3 + len(explanation.DELAYS)),
    }


def residual_tables(rig: Rig, law: TrackingLaw) -> list[str]:
    """Numbers and tables of residuals in C.

    Parameters
    ----------
    rig : Rig
        The rig.
    law : TrackingLaw
        Its law.

    Returns
    -------
    list of str
        Lines of a header.
    """
    own = residual.Residual(rig, law)
    numbers: dict[str, float] = {
        "FLOOR": residual.FLOOR,
        "CHANGE": residual.CHANGE,
        "PEAK": residual.PEAK,
        "GAP": residual.GAP,
        "STEPS": residual.STEPS,
        "FEW": residual.FEW,
        "REPEATS": residual.REPEATS,
        "HALF": residual.HALF,
        "SLIP": residual.SLIP,
        "JITTER": residual.JITTER,
        "FADE": own.fade,
        "LARGEST_IMPULSE": residual.PATIENCE[0],
        "LONGEST_SUSPICION": residual.PATIENCE[1],
        "LOOKS": len(residual.LOOKS),
        "NEWEST_INSTANTS": explanation.INSTANTS,
        "NEWEST": explanation.NEWEST,
        "EARLIER": explanation.EARLIER,
        "SHORTEST": explanation.SHORTEST,
        "CLEARER": explanation.CLEARER,
        "NEAR": explanation.NEAR,
        "NOT": explanation.NOT,
        "LARGEST": explanation.LARGEST,
        "STRONGEST": explanation.STRONGEST,
        "USUAL": len(explanation.USUAL),
        "DELAYS": len(explanation.DELAYS),
        "KNOWS_SPEEDS": int(bool(own.joints)),
        "SHARED_TORQUES": int(own.shared),
    }
    causes = sum(1 << int(reason) for reason in residual.CAUSES)
    rows = [", ".join(number(getattr(a, name)) for name in COLUMNS) for a in own.allowances]
    return [
        *(f"#define RIG_{name} {number(value)}" for name, value in numbers.items()),
        f"#define RIG_CAUSES_OF_RESIDUAL 0x{causes:x}ULL",
        array("static const double rig_residual_rates", residual.RATES),
        array("static const int rig_answers", [int(a) for a in own.answers], whole=True),
        array("static const double rig_mean_shares", own.shares),
        array("static const int rig_looks", sorted(residual.LOOKS), whole=True),
        array("static const double rig_usual", explanation.USUAL),
        array("static const double rig_delays", explanation.DELAYS),
        array("static const int rig_speeds", own.joints, whole=True),
        f"typedef struct {{ double {', '.join(COLUMNS)}; }} rig_allowance;",
        "static const rig_allowance rig_allowances[RIG_AXES] = {",
        *(f"    {{{row}}}," for row in rows),
        "};",
    ]
