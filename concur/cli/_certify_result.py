"""Result of `concur certify`, and its JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from concur.certify import (
    Certificate,
    ChannelCertificate,
    ErrorMotions,
    IntegralCertificate,
    OperatingCertificate,
    SampleLimits,
    Status,
    Tube,
)
from concur.cli._answer import answer
from concur.io import Task


@dataclass(frozen=True, eq=False)
class CertifyResult:
    """A certificate of a task's servo, with its files and further results."""

    task: Task
    certificate: Certificate
    rechecked: Status  # of the stored proof, by the independent verification
    start: tuple[np.ndarray, np.ndarray]  # pose and velocity error
    seconds: float
    decay: ErrorMotions | None  # None unless proved
    notes: tuple[str, ...]  # differences between the task's loop and the certified one
    files: tuple[Path, ...]
    operating: OperatingCertificate | None = None
    held: tuple[SampleLimits | None, ...] = ()  # None for a channel without common modes
    disturbance: float | None = None
    tubes: tuple[Tube, ...] = ()  # empty unless requested and proved
    tubes_rechecked: tuple[Status, ...] = ()
    integral: IntegralCertificate | None = None  # None for a law without integral action

    @property
    def status(self) -> Status:
        """Status of the decay."""
        return (self.integral or self.certificate).status

    @property
    def decays(self) -> bool:
        """Whether the decay is proved and its stored proof confirmed."""
        return self.status is Status.PROVED and self.rechecked is Status.PROVED

    @property
    def proved(self) -> bool:
        """Whether all requested claims are proved."""
        asked = [] if self.operating is None else [self.operating.status]
        asked += [one.status for one in self.tubes]
        asked += self.tubes_rechecked
        return self.decays and all(status is Status.PROVED for status in asked)

    @property
    def _decay_claims(self) -> list[tuple[str, Status, str]]:
        if self.integral is not None:
            return [(p.name, p.status, p.reason) for p in self.integral.parts]
        return [(p.channel.name, p.status, p.reason) for p in self.certificate.parts]

    @property
    def problems(self) -> tuple[str, ...]:
        """Each claim that is not proved, with its reason."""
        found = [
            *((f"decay of {name}", status, reason) for name, status, reason in self._decay_claims),
            ("stored proof", self.rechecked, ""),
            *(("tube", one.status, one.reason) for one in self.tubes),
            *(("stored tube", status, "") for status in self.tubes_rechecked),
        ]
        if self.operating is not None:
            found.append(("operating box", self.operating.status, self.operating.reason))
        return tuple(
            f"{claim}: {status.name}" + f", {reason}" * bool(reason)
            for claim, status, reason in found
            if status is not Status.PROVED
        )

    @property
    def covered(self) -> bool:
        """Whether the certificate covers the task's start."""
        if self.integral is not None:
            return self.integral.contains(*self.start, np.zeros_like(self.start[0]))
        return self.certificate.contains(*self.start)

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON, in SI units; missing values are null."""
        found = self.certificate
        x, ve = self.start
        own: dict[str, Any] = {
            "task": self.task.name,
            "proved": self.proved,
            "recheck": self.rechecked.name,
            "method": found.method,
            "angle": found.angle,
            "distance": found.distance,
            "rate": found.rate if found.status is Status.PROVED else None,
            "true_rate": _finite(found.true_rate),
            "overshoot": _finite(found.transient_bound),
            "boxes": found.boxes,
            "seconds": self.seconds,
            "channels": [_channel_dict(part, component_names(self.task)) for part in found.parts],
            "against": None if found.counterexample is None else str(found.counterexample),
            "start": {
                "x": x.tolist(),
                "ve": ve.tolist(),
                "covered": self.covered,
                "norm": _finite(found.norm(x, ve)),
            },
            "calmer": _calmer_dict(found),
            "settling": _finite(found.settling(0.01)),
            "held": [None if one is None else _held_dict(one) for one in self.held],
            "disturbance": self.disturbance,
            "tubes": [
                _tube_dict(one) | {"recheck": again.name}
                for one, again in zip(self.tubes, self.tubes_rechecked, strict=True)
            ],
            "operating": None if self.operating is None else _operating_dict(self.operating),
            "integral": None if self.integral is None else _integral_dict(self.integral),
            "estimates_not_proved": {
                "largest_share_of_bound": self.decay and self.decay.share(found.rate)
            },
            "conditions": list((self.integral or found).conditions),
            "notes": list(self.notes),
        }
        return answer(
            "certify",
            self.proved,
            self.status.name,
            name=self.task.name,
            robot=self.task.robot.name,
            problems=self.problems,
            warnings=self.notes,
            files=self.files,
            **own,
        )


def largest_disturbance(found: Tube) -> float:
    """Largest disturbance whose tube, without a start, stays in the domain, m/s^2; rounded."""
    return found.limit * found.decay.rate / found.decay.push * found.channel.length


def _tube_dict(found: Tube) -> dict[str, Any]:
    return {
        "components": found.channel.index.tolist(),
        "status": found.status.name,
        "reason": found.reason,
        "rate": found.rate,
        "angle": None if found.angle is None else _finite(found.angle),
        "distance": None if found.distance is None else _finite(found.distance),
        "bounds": [_finite(value) for value in found.components],
        "largest_disturbance": _finite(largest_disturbance(found)),
    }


def _held_dict(found: SampleLimits) -> dict[str, Any]:
    return {"period": found.period, "delay": found.delay, "advised": found.advised}


def _calmer_dict(found: Certificate) -> dict[str, Any] | None:
    if found.low_transient is None:
        return None
    return {"rate": found.low_transient.rate, "overshoot": found.low_transient.transient_bound}


def _integral_dict(found: IntegralCertificate) -> dict[str, Any]:
    return {
        "status": found.status.name,
        "rate": found.rate if found.status is Status.PROVED else None,
        "parts": [
            {
                "components": part.index.tolist(),
                "status": part.status.name,
                "reason": part.reason,
                "rate": part.rate if part.status is Status.PROVED else None,
                "true_rate": _finite(part.true_rate),
                "angle": part.angle,
                "bound": _finite(part.bound),
            }
            for part in found.parts
        ],
    }


def _operating_dict(found: OperatingCertificate) -> dict[str, Any]:
    return {
        "status": found.status.name,
        "reason": found.reason,
        "margin": found.margin,
        "least": found.required_margin,
        "controls": list(found.names),
        "lower": [_finite(value) for value in found.lower],
        "upper": [_finite(value) for value in found.upper],
        "boxes": len(found.boxes),
        "left": len(found.undecided_boxes),
        "estimates_not_proved": {"margin_found": _finite(found.margin_found)},
    }


def component_names(task: Task) -> list[str]:
    """Names of the components of the error, with their outputs."""
    return [f"{output.name}.{name}" for output in task.outputs for name in output.coordinate_names]


def channel_overshoot(part: ChannelCertificate) -> float:
    return math.nan if part.P is None else math.sqrt(part.upper / part.lower)


def _channel_dict(part: ChannelCertificate, names: list[str]) -> dict[str, Any]:
    return {
        "components": part.channel.index.tolist(),
        "names": [names[i] for i in part.channel.index],
        "kind": part.channel.kind,
        "status": part.status.name,
        "reason": part.reason,
        "rate": part.rate if part.status is Status.PROVED else None,
        "true_rate": _finite(part.true_rate),
        "overshoot": _finite(channel_overshoot(part)),
        "angle": part.angle,
        "distance": part.distance,
        "level": _finite(part.level),
        "boxes": len(part.boxes),
        "seconds": part.seconds,
        "estimates_not_proved": {
            "rate": part.rate if part.status is not Status.PROVED and part.rate > 0.0 else None
        },
    }


def _finite(value: float) -> float | None:
    """Value for JSON; nonfinite numbers become None."""
    return value if math.isfinite(value) else None
