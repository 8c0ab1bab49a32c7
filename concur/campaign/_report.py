"""Report of a campaign: one self-contained page, and the same content for JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from concur.campaign._answers import (
    PairedComparison,
    PassRate,
    WorstWorld,
    pass_rates,
    quantiles,
    worst_worlds,
)
from concur.campaign._result import CampaignResult
from concur.campaign._sampled import SampledCurves
from concur.campaign._search import WorstFound
from concur.campaign._sensitivity import RankInfluence, SobolIndex, rank_influences
from concur.results import Row, Table, plain, show

SAMPLED = "These results are sampled, not proved: worlds that were not drawn may be worse."
"""Stands in each report."""

_NUMBER = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?")
_FREE = (-math.inf, math.inf)
_LISTED = 5
_LOW = 0.05
_STRONGEST = 3


@dataclass(frozen=True, eq=False)
class CampaignReport:
    """Answers of a campaign in the order in which a reader needs them.

    Parameters
    ----------
    result : CampaignResult
        The campaign.
    name : str
        Name of the task.
    found : sequence of WorstFound
        Results of searches.
    sobol : sequence of SobolIndex
        Sobol indices, if they were computed.
    comparisons : sequence of PairedComparison
        Comparison with another controller, which is the first of both.
    curves : sequence of SampledCurves
        Curves of replayed runs, with proved bounds where there are some.
    files : mapping of str to str
        Task file that reproduces the worst world, by requirement.
    facts : mapping of str to str
        Further facts for the last table, such as the executor.
    confidence : float
        Confidence of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult, CampaignReport
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> report = CampaignReport(result, "arm in 50 worlds")
    >>> report.passed
    False
    """

    result: CampaignResult
    name: str = ""
    found: Sequence[WorstFound] = ()
    sobol: Sequence[SobolIndex] = ()
    comparisons: Sequence[PairedComparison] = ()
    curves: Sequence[SampledCurves] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    confidence: float = 0.95

    note = SAMPLED

    @cached_property
    def rates(self) -> tuple[PassRate, ...]:
        """Pass rates: of all requirements, then of each."""
        return pass_rates(self.result, self.confidence)

    @cached_property
    def influences(self) -> tuple[RankInfluence, ...]:
        """Rank influences of all quantities on all requirements."""
        return rank_influences(self.result, 1.0 - self.confidence)

    @cached_property
    def worst(self) -> tuple[WorstWorld, ...]:
        """World with the lowest robustness of each requirement, among the samples."""
        return tuple(
            world for name, _ in self.result.columns for world in worst_worlds(self.result, name)
        )

    @property
    def passed(self) -> bool:
        """Whether there are worlds, and all of them and of the searches keep all requirements."""
        rate = self.rates[0]
        return 0 < rate.worlds == rate.passed and all(one.value > 0.0 for one in self.found)

    @property
    def status(self) -> str:
        """Verdict: "passed" or "failed"."""
        return "passed" if self.passed else "failed"

    @property
    def rows(self) -> tuple[Row, ...]:
        """Lowest robustness of each requirement, as of the campaign."""
        return self.result.rows

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        rate = self.rates[0]
        failed, invalid = rate.worlds - rate.passed, len(self.result.invalid)
        if not rate.worlds:
            return "no world was evaluated"
        if not self.result.columns:
            return "no requirement was evaluated"
        if invalid:
            text = f"{failed} of {rate.worlds} sampled worlds fail; in {invalid} of them the run"
            return f"{text} is not valid"
        if failed:
            return f"{failed} of {rate.worlds} sampled worlds break a requirement"
        if not self.passed:
            return "the search found a world that breaks a requirement"
        return f"all {rate.worlds} sampled worlds keep all requirements"

    @property
    def problems(self) -> tuple[str, ...]:
        """Causes of invalid runs, then each broken requirement, most often broken first.

        With the strongest influence on it.
        """
        broken = [rate for rate in self.rates[1:] if rate.passed < rate.worlds]
        found = [f"not valid: {text}" for text in _causes(self.result.invalid)]
        for rate in sorted(broken, key=lambda one: one.passed):
            text = f"{rate.name}: {rate.worlds - rate.passed} of {rate.worlds} worlds fail"
            strongest = self.strongest(rate.name)
            found.append(f"{text}; {strongest[0]}" if strongest else text)
        listed = {rate.name for rate in broken}
        found += [
            str(one) for one in self.found if one.value <= 0.0 and one.requirement not in listed
        ]
        return tuple(found)

    @property
    def crashes(self) -> tuple[str, ...]:
        """Each cause of crashed worlds, most frequent first, with the first of its worlds."""
        return tuple(_causes(self.result.crashes))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Requirements, their share of worlds, and the world with the lowest robustness."""
        rows = []
        for rate, worst in zip(self.rates[1:], self.worst, strict=True):
            name = rate.name
            lowest = min([worst.value, *(o.value for o in self.found if o.requirement == name)])
            value = f"{lowest:.4g} {worst.unit}".removesuffix(" 1")
            passed, file = f"{rate.passed} of {rate.worlds}", self.files.get(name, "")
            good = rate.passed == rate.worlds and lowest > 0.0
            rows.append((name, passed, value, str(worst.number), file, good))
        head = ("requirement", "pass", "lowest robustness", "world", "task file", "kept")
        return (Table("", head, tuple(rows)),)

    @property
    def notes(self) -> tuple[str, ...]:
        """Pass rate with its interval, causes of crashes, and how often limits were active."""
        crashed = (f"crashed: {crash}" for crash in self.crashes[:_LISTED])
        limited = (f"{row.quantity}: {row.value:.3g} %, {row.place}" for row in self.result.limited)
        return (str(self.rates[0]), *crashed, *limited)

    @property
    def details(self) -> dict[str, Any]:
        """Content for JSON, in SI units; missing and infinite numbers are null."""
        result, shares = self.result, self.shares
        ends = [
            (np.nanmin(own, initial=np.inf), np.nanmax(own, initial=-np.inf))
            for own in result.extremes.T
        ]
        answers: dict[str, Sequence[Any]] = {
            "rates": self.rates, "search": self.found, "influences": self.influences,
            "sobol": self.sobol, "comparisons": self.comparisons, "curves": self.curves,
        }  # fmt: skip
        found: dict[str, Any] = {
            "note": self.note,
            "samples": len(result),
            **{name: getattr(result, name) for name in ("method", "seed", "duration", "key")},
            "looks": list(result.looks),
            **{
                name: [
                    {"reason": why, "worlds": len(numbers), "numbers": numbers[:_LISTED]}
                    for why, numbers in causes_of(reasons)
                ]
                for name, reasons in (("crashed", result.crashes), ("invalid", result.invalid))
            },
            "requirements": [
                {"name": name, "unit": unit, "lowest": own[0], "quantile_5": own[1],
                 "median": own[2]}
                for (name, unit), own in zip(result.columns, shares, strict=True)
            ],
            "signals": [
                {"name": name, "unit": unit, "smallest": low, "largest": high,
                 "limits": list(result.limits.get(name, _FREE))}
                for (name, unit), (low, high) in zip(result.signals, ends, strict=True)
            ],
            "worst": [
                one.as_dict() | {"file": self.files.get(one.requirement)} for one in self.worst
            ],
            **{name: [one.as_dict() for one in own] for name, own in answers.items()},
        }  # fmt: skip
        shown: dict[str, Any] = plain(found)
        return shown

    def write(self, directory: str | PathLike[str]) -> Path:
        """Write `report.html`, a page that refers to no other file.

        Parameters
        ----------
        directory : str or path-like
            Folder of the page; created if it does not exist.

        Returns
        -------
        pathlib.Path
            The page.

        Raises
        ------
        ConcurError
            If it cannot be written.
        """
        return show("campaigns.write_campaign", self, directory)

    def strongest(self, requirement: str) -> list[RankInfluence]:
        """Strongest influences on a requirement that are not noise.

        Parameters
        ----------
        requirement : str
            Name of the requirement.

        Returns
        -------
        list of RankInfluence
            At most three, strongest first.
        """
        own = [one for one in self.influences if one.requirement == requirement and one.shown]
        return own[:_STRONGEST]

    @property
    def shares(self) -> np.ndarray:
        """Lowest robustness, 5 % quantile and median of each requirement, shape (m, 3)."""
        return quantiles(self.result, (0.0, _LOW, 0.5)).T

    @property
    def content(self) -> dict[str, str]:
        """Facts on the campaign, by label."""
        result = self.result
        return {
            "Worlds": f"{len(result)}, {result.method}, seed {result.seed}",
            "Looks": ", ".join(map(str, result.looks)),
            "Duration": f"{result.duration:.6g} s",
            "Uncertain quantities": ", ".join(f"{n} [{u or '1'}]" for n, u in result.quantities),
            "Crashed worlds": "; ".join(self.crashes) or "–",
            "Invalid runs": "; ".join(_causes(result.invalid)) or "–",
            "Key": result.key,
            **self.facts,
        }


def causes_of(crashes: Mapping[int, str]) -> list[tuple[str, list[int]]]:
    """Reasons that differ in numbers only, most frequent first: the first text, and its worlds."""
    found: dict[str, list[int]] = {}
    for number, why in crashes.items():
        found.setdefault(_NUMBER.sub("#", why), []).append(number)
    causes = ((crashes[numbers[0]], numbers) for numbers in found.values())
    return sorted(causes, key=lambda cause: -len(cause[1]))


def _causes(reasons: Mapping[int, str]) -> Iterator[str]:
    """Each cause, most frequent first, with the first of its worlds."""
    for why, numbers in causes_of(reasons):
        listed = ", ".join(map(str, numbers[:_LISTED]))
        more = f" and {len(numbers) - _LISTED} more" if len(numbers) > _LISTED else ""
        yield f"world{'s' * (len(numbers) > 1)} {listed}{more}: {why}"
