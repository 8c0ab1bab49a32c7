"""Laws side by side in the worlds of tasks: errors, torques and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from concur.campaign._campaign import Campaign
from concur.campaign._report import causes_of
from concur.campaign._result import CampaignResult
from concur.campaign._verify import verify
from concur.control import JointLimits, law_parameters
from concur.errors import ConcurError, SimulationError, shown
from concur.io import Task
from concur.results import Figures, JsonResult, Row, Table, plain, show
from concur.simulation import error_parts
from concur.worlds import Requirement

SHARES = {"median": 0.5, "95 %": 0.95, "worst": 1.0}
"""Quantiles over the worlds by name; each is the value of a world."""

REPLAYED = 5
"""Worlds of a law that stop early of which the reason is computed, by a run each."""

CAUSES = 3
"""Causes of failures of a law that are listed."""


@dataclass(frozen=True, eq=False)
class LawInWorlds:
    """One law in all worlds of a task.

    Parameters
    ----------
    name : str
        Name of the law, and of the task if there are several.
    robot : str
        Name of the robot.
    errors : dict of (str, str) to numpy.ndarray
        Largest error of each output from some time on in each world, shape (n,), by name of the
        output and unit, m and rad apart; infinite where a run stops early or is not valid.
    final : dict of (str, str) to numpy.ndarray
        The same at the end, which `final_error` of the tolerances bounds.
    share : numpy.ndarray
        Largest share of a torque limit in each world, shape (n,); NaN without limits.
    peak : dict of str to numpy.ndarray
        Largest control in each world, shape (n,), by unit: "N m" and "N".
    failures : dict of int to str
        Why a world breaks a requirement of the task, by its number.
    after : float
        Time from which on errors count, s.
    judged : tuple of str
        Names of the requirements by which worlds fail.
    parameters : str
        Gains and other parameters of the law in words. Default: none.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import LawInWorlds
    >>> off, share = {("hand", "m"): np.array([0.3])}, np.array([0.4])
    >>> LawInWorlds("servo", "rover", off, off, share, {}, {}, 5.0).torque
    ('largest share of a torque limit', 0.4, '')
    """

    name: str
    robot: str
    errors: Mapping[tuple[str, str], np.ndarray]
    final: Mapping[tuple[str, str], np.ndarray]
    share: np.ndarray
    peak: Mapping[str, np.ndarray]
    failures: Mapping[int, str]
    after: float
    judged: tuple[str, ...] = ()
    parameters: str = ""

    @property
    def torque(self) -> tuple[str, float, str]:
        """Largest share of a torque limit over the worlds, else the largest control; with unit."""
        if np.isfinite(self.share).any():
            return "largest share of a torque limit", float(np.nanmax(self.share)), ""
        unit, values = next(iter(self.peak.items()))
        return f"peak {'torque' if unit == 'N m' else 'force'}", float(np.nanmax(values)), unit


def quantiles_of(values: np.ndarray) -> dict[str, float]:
    """Quantiles of values over the worlds, by the names in `SHARES`."""
    found = np.quantile(values, [*SHARES.values()], method="inverted_cdf")
    return dict(zip(SHARES, found.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class LawComparison(JsonResult):
    """Laws side by side in many worlds; made by `compare_laws`.

    Parameters
    ----------
    laws : tuple of LawInWorlds
        The laws, those of one task one behind the other.
    worlds : int
        Number of worlds.
    seed : int
        Seed of their draws.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import LawComparison, LawInWorlds
    >>> off = {("hand", "m"): np.array([0.3, 0.5, np.inf])}
    >>> servo = LawInWorlds("servo", "rover", off, off, np.full(3, 0.4), {}, {2: "stopped"}, 5.0)
    >>> found = LawComparison((servo,), 3, 0)
    >>> found.status, [row.shown for row in found.rows]
    ('failed', ['0.5 m', 'inf m', 'inf m', 'inf m', '0.4', '1'])
    """

    kind = "compare"

    laws: tuple[LawInWorlds, ...]
    worlds: int
    seed: int

    @property
    def name(self) -> str:
        """Names of the laws."""
        return ", ".join(law.name for law in self.laws)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Errors, torques and failures; the law is the place."""
        found = []
        for law in self.laws:
            for (output, unit), values in law.errors.items():
                found += [
                    Row(f"error of {output}, {kind}", value, unit=unit, place=law.name)
                    for kind, value in quantiles_of(values).items()
                ]
                label, last = f"error of {output} at the end, worst", law.final[output, unit].max()
                found.append(Row(label, float(last), unit=unit, place=law.name))
            label, torque, unit = law.torque
            found.append(Row(label, torque, unit=unit, place=law.name))
            failed = float(len(law.failures))
            found.append(Row.judged("worlds that fail", failed, 0.0, "", law.name))
        return tuple(found)

    @property
    def tables(self) -> tuple[Table]:
        """A row for each law and output."""
        rows = []
        for law in self.laws:
            _label, torque, unit = law.torque
            force = f"{100 * torque:.3g} %" if not unit else f"{torque:.3g} {unit}"
            once = force, f"{len(law.failures)} of {self.worlds}"
            for k, ((output, unit), values) in enumerate(law.errors.items()):
                last = law.final[output, unit].max()
                cells = (f"{value:.3g}" for value in (*quantiles_of(values).values(), last))
                name, rest = (law.name, once) if k == 0 else ("", ("", ""))
                rows.append((name, f"{output}, {unit}", *cells, *rest))
        limited = all(not law.torque[2] for law in self.laws)
        torques = "largest share\nof a torque limit" if limited else "largest control"
        head = ("law", "error of", *SHARES, "at the end,\nworst", torques, "worlds\nthat fail")
        return (Table("", head, tuple(rows)),)

    @property
    def problems(self) -> tuple[str, ...]:
        """Causes of failures of each law, most frequent first, with the first of their worlds."""
        return tuple(
            f"{law.name}: {len(worlds)} of {self.worlds} worlds fail, world {worlds[0]}: {why}"
            for law in self.laws
            for why, worlds in causes_of(law.failures)[:CAUSES]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Parameters of the laws, when errors count, what is judged, and laws that never fail."""
        times = ", ".join(f"{x:g}" for x in dict.fromkeys(law.after for law in self.laws))
        drawn = f"in {self.worlds} worlds of the seed {self.seed}; sampled, not proved"
        stated = (f"{law.name}: {law.parameters}" for law in self.laws if law.parameters)
        late = f"Errors are the largest after {times} s, {drawn}."
        judged = ", ".join(dict.fromkeys(name for law in self.laws for name in law.judged))
        found = [*stated, late, f"Worlds fail by the requirements {judged}."]
        kept = ", ".join(f"`{law.name}`" for law in self.laws if not law.failures)
        if kept and self.status == "failed":
            found.append(f"All {self.worlds} worlds keep them with {kept}.")
        return tuple(found)

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of the answer in JSON: all values, by world."""
        return {
            "worlds": self.worlds,
            "seed": self.seed,
            "laws": [
                {
                    "name": law.name,
                    "after": law.after,
                    "judged": list(law.judged),
                    "parameters": law.parameters,
                    "errors": [
                        {"output": output, "unit": unit, "values": plain(values)}
                        | plain(quantiles_of(values))
                        | {"final": plain(law.final[output, unit])}
                        for (output, unit), values in law.errors.items()
                    ],
                    "torque_share": plain(law.share),
                    "peak": plain(law.peak),
                    "failures": [{"world": k, "why": why} for k, why in law.failures.items()],
                }
                for law in self.laws
            ],
        }

    @property
    def figures(self) -> Figures:
        """Errors and torques of the laws, a dot for each world."""
        return {"laws": partial(show, "laws_figure", self)}


def compare_laws(
    tasks: Task | Sequence[Task],
    laws: Iterable[str] | Mapping[str, str | Mapping[str, Any]] | None = None,
    worlds: int = 20,
    seed: int = 0,
    executor: Executor | int | None = None,
    progress: bool | Callable[[float], Any] = False,
) -> LawComparison:
    """Compare laws in the same worlds of one task or several.

    Parameters
    ----------
    tasks : Task or sequence of Task
        Tasks with an uncertainty or imperfections, with outputs of the same names.
    laws : sequence of str or mapping, optional
        Names or kinds of laws as for `Task.with_law`, or such by the names that they get. Default:
        the `laws` of each task, or its own.
    worlds : int
        Number of worlds.
    seed : int
        Seed of the draws, of jitter and of noise: all laws meet the same.
    executor : concurrent.futures.Executor or int, optional
        As for `verify`.
    progress : bool or callable, optional
        Called with the share that is done.

    Returns
    -------
    LawComparison
        Median, 95 % quantile and worst error of each output after the time `evaluate_after` of the
        tolerances, largest torques, and failures of the requirements with their reasons.

    Raises
    ------
    ConcurError
        If a law cannot be made for a task, a task has no uncertainty, or outputs differ.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from scipy.stats import uniform
    >>> import concur as cc
    >>> from concur.worlds import Quantity, Uncertainty
    >>> mass = Uncertainty((Quantity("mass", "forearm", uniform(-0.05, 0.1), unit="kg"),))
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> task = replace(task, duration=0.01, uncertainty=mass, requirements=())
    >>> found = cc.compare_laws(task, ["servo"], worlds=2)
    >>> found.rows[0].quantity, found.status
    ('error of base, median', 'passed')
    """
    given = (tasks,) if isinstance(tasks, Task) else tuple(tasks)
    chosen = [(task, name, law) for task in given for name, law in _named(task, laws).items()]
    if not chosen:
        cure = "Name tasks and laws, such as compare_laws(task, ['servo', 'passive'])."
        raise ConcurError("comparison of laws", expected="a law", came="no law", cure=cure)
    single = len({id(task) for task, *_ in chosen}) == 1
    alike = len({task.name for task in given}) < len(given)
    titles = [f"{task.path.name}: " if alike else f"{task.name}: " for task, *_ in chosen]
    names = [title * (not single) + one for title, (_, one, _) in zip(titles, chosen, strict=True)]
    wanted = [(one.name, one.group) for one in given[0].outputs]
    found = []
    for k, (task, _, law) in enumerate(chosen):
        if [(one.name, one.group) for one in task.outputs] != wanted:
            raise ConcurError(
                f"comparison of laws, outputs of `{task.name}`",
                expected=f"those of `{given[0].name}`: {shown(wanted)}",
                came=shown([(one.name, one.group) for one in task.outputs]),
                cure="Compare tasks whose outputs have the same names and groups, in one order.",
            )
        done = progress if isinstance(progress, bool) else partial(_part, progress, k, len(chosen))
        own = task if law is None else task.with_law(law)
        found.append(_evaluated(names[k], own, worlds, seed, executor, done))
    return LawComparison(tuple(found), worlds, seed)


def _named(task: Task, laws: Any) -> dict[str, Any]:
    """Laws by name; None for the law of the task."""
    if laws is None:
        own = str(task.law_table.get("kind", "servo"))
        return {name: name for name in task.laws} or {own: None}
    return dict(laws) if isinstance(laws, Mapping) else {str(law): law for law in laws}


def _part(progress: Callable[[float], Any], k: int, count: int, share: float) -> None:
    progress((k + share) / count)


def _evaluated(
    name: str, task: Task, worlds: int, seed: int, executor: Executor | int | None, progress: Any
) -> LawInWorlds:
    """Errors, torques and failures of the law of a task in worlds."""
    period = task.control_period or task.dt
    after = task.tolerances.evaluate_after
    after = min(after if np.isfinite(after) else task.duration / 2, task.duration - period)
    parts = {(", ".join(words), unit): words for words, unit, _ in error_parts(task.outputs)}
    sizes = [
        Requirement("error", f"{when} {':'.join(words)}", ends, 1.0, unit, time)
        for when, time in (("late", after), ("last", task.duration - period))
        for (_, unit), words in parts.items()
        for ends in [(("error:" + ":".join(words), -np.inf, 1.0),)]
    ]
    campaign = Campaign(task, seed, requirements=(*task.requirements, *sizes))
    result = verify(campaign, worlds, executor, progress=progress)
    count = len(task.requirements)
    whole = result.stopped >= result.duration
    whole &= ~np.isin(result.numbers, [*result.crashes, *result.invalid])
    found = np.where(whole, 1.0 - result.values[:, count:].T, np.inf)  # from the bound of 1
    late, last = np.split(found, 2)
    own = JointLimits.of(task.robot, task.plant or task.robot)
    # The extremes are sizes: of different limits in both directions the larger one counts.
    limits = np.abs(replace(own, law=task.law.torque_limits).controls).max(axis=1)
    signals = [name for name, _ in result.signals]
    model = task.law.model
    peaks = np.column_stack(
        [result.extremes[:, signals.index(f"torque:{name}")] for name in model.control_names]
    )
    units = np.array(model.control_units)
    share = np.max(np.where(np.isfinite(limits), peaks / limits, -np.inf), axis=1)
    return LawInWorlds(
        name,
        task.robot.name,
        dict(zip(parts, late, strict=True)),
        dict(zip(parts, last, strict=True)),
        np.where(share >= 0.0, share, np.nan),
        {unit: peaks[:, units == unit].max(axis=1) for unit in dict.fromkeys(units.tolist())},
        _failures(campaign, result, count),
        after,
        tuple(one.name for one in task.requirements),
        law_parameters(task.law),
    )


def _failures(campaign: Campaign, result: CampaignResult, count: int) -> dict[int, str]:
    """Reason of each world that breaks one of the first requirements, by its number."""
    held = result.held[:, :count].all(axis=1)
    found, replayed = dict[int, str](), 0
    for row in np.flatnonzero(~held):
        number = int(result.numbers[row])
        why = (result.crashes | result.invalid).get(number)
        if why is None and result.stopped[row] < result.duration:
            why = f"stopped at {result.stopped[row]:.3g} s"
            if replayed < REPLAYED:
                replayed += 1
                why = _stop(campaign, result.worlds[row], number) or why
        if why is None:
            broken = [
                f"{name} missed by {-value:.3g} {unit}".rstrip()
                for (name, unit), value in zip(
                    result.columns[:count], result.robustness[row], strict=False
                )
                if not value > 0.0
            ]
            why = ", ".join(broken)
        found[number] = why
    return found


def _stop(campaign: Campaign, world: np.ndarray, number: int) -> str:
    """Why a run stops early."""
    try:
        campaign.replay(world, number)
    except SimulationError as error:
        time = error.data.get("time")
        return f"{error.came}" + (f" at {time:.3g} s" if time is not None else "")
    return ""
