"""An emulated motion capture of the base: poses with noise, delay and gaps."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hil.settings import EmulatorSettings, Rig

_ROUNDING = 1e-9  # s: an instant that is nearer than this counts as reached

PoseOf = Callable[[], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Returns the present position (m) and quaternion (x, y, z, w) of the base."""


class MotionCapture:
    """Samples the pose of the base at a fixed rate.

    `send` is called with each sample after the latency: a mapping with `seq`, `time` (instant of
    the sample, s), `position` (m), `quaternion` (x, y, z, w) and `body`.
    """

    def __init__(
        self,
        settings: EmulatorSettings,
        body: str,
        send: Callable[[Mapping[str, Any]], object],
        start: float,
        gives: str = "pose",
    ) -> None:
        self._settings = settings
        self._body = body
        self._send = send
        self._start = start
        self._gives = gives
        self._random = np.random.default_rng([settings.seed, 0x706F7365])
        self._waiting: deque[tuple[float, dict[str, Any]]] = deque()
        self.samples = 0

    @property
    def next_event(self) -> float:
        """Instant of the next action of `poll`, s."""
        if self._settings.pose_rate <= 0.0:
            return math.inf
        sample = self._start + self.samples / self._settings.pose_rate
        return min(sample, self._waiting[0][0]) if self._waiting else sample

    def poll(self, now: float, pose: PoseOf) -> None:
        """Take a sample if one is due, and send samples whose latency has passed."""
        rate = self._settings.pose_rate
        if rate <= 0.0:
            return
        reached = now + _ROUNDING
        if reached >= self._start + self.samples / rate:
            sample = self._sample(now, *pose())
            # After a pause there is one sample, without the missed ones.
            self.samples = max(self.samples + 1, math.floor((reached - self._start) * rate) + 1)
            if self._random.random() >= self._settings.pose_loss:
                self._waiting.append((now + self._settings.pose_latency, sample))
        while self._waiting and self._waiting[0][0] <= reached:
            self._send(self._waiting.popleft()[1])

    def _sample(
        self, now: float, position: NDArray[np.float64], quaternion: NDArray[np.float64]
    ) -> dict[str, Any]:
        noise = self._settings.pose_noise * self._random.standard_normal(6)
        sample: dict[str, Any] = {"seq": self.samples, "time": now, "body": self._body}
        if self._gives != "attitude":
            sample["position"] = [float(x) for x in position + noise[:3]]
        if self._gives != "position":
            sample["quaternion"] = _turned(quaternion, noise[3:])
        return sample


def _turned(quaternion: NDArray[np.float64], angle: NDArray[np.float64]) -> list[float]:
    """Turn a quaternion (x, y, z, w) by a small rotation vector in the body, rad."""
    x, y, z, w = (float(part) for part in quaternion)
    a, b, c = (0.5 * float(part) for part in angle)
    turned = (
        x + w * a + y * c - z * b,
        y + w * b + z * a - x * c,
        z + w * c + x * b - y * a,
        w - x * a - y * b - z * c,
    )
    size = math.sqrt(sum(part * part for part in turned))
    return [part / size for part in turned]


def pose_sender(
    rig: Rig, body: str
) -> tuple[Callable[[Mapping[str, Any]], object], Callable[[], object]]:
    """Functions that send samples to the rig's pose source, and that close the sender."""
    if rig.pose is None or rig.emulator.pose_rate <= 0.0:
        return (lambda sample: None), (lambda: None)
    from hil.state.pose_source import PoseSender

    sender = PoseSender(rig.pose.kind, rig.pose.host, rig.pose.port, body)

    def send(sample: Mapping[str, Any]) -> None:
        sender.send(sample["time"], sample.get("position"), sample.get("quaternion"))

    return send, sender.close
