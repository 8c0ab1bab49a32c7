"""The file format of a certificate, and its reader, which validates every entry.

File format
-----------
JSON, numbers as decimal fractions that read back as the same float64. Lengths in m, angles in
rad, rates in 1/s. Unlisted names are ignored, but covered by `hash`.

==============  ==================================================================================
format          "concur certificate"
version         1
versions        object: versions of the software used
status          "PROVED", "REFUTED" or "UNDECIDED"
method          "tight" or "thesis"
rate            claimed rate of the whole loop, or null without a claim
overshoot       c of |z(t)| <= c exp(-rate t) |z(0)|, metres divided by the channel's length;
                null without a claim
conditions      list of texts: conditions of the claim
law             object: `groups` (list of "R1", "R2", "R3", "SO2", "SE2", "S2", "SO3", "SE3"),
                `stiffness`, `damping`, `inertia` (lists of rows) and `hash`, see `law_hash`; a law
                with integral action has its gain as `integral`, and is confirmed only in the
                format of `_recheck_integral`
channels        list of objects, see below; without a proof it may be empty
counterexample  null or object: `channel` (index in `channels`), `x` (n numbers) and `direction`
                (2 n numbers): a state (x, ve) where P does not decay, or where z^T P z <= 0
chain           absent, null, or a list with one object per channel: `step` (s), `bounds` (bounds of
                |z(t)| / |z(0)| in 512 steps of time, as lists of at most 400 numbers) and `forms`
                (proofs like those of channels, each with its own region), see `_recheck_chain`
hash            SHA-256 of the rest: JSON with sorted keys and no blanks
==============  ==================================================================================

==============  ==================================================================================
components      indices in x of the whole loop, ascending
status          as above
rate            the rate of this channel
angle           bound of the rotations, or null without rotations
distance        bound of the positions that rotations act on, or null without them
bound           bound of (x KP x + ve I ve) / 2, or null without either
P               matrix of the Lyapunov function, list of rows
weight          factor of z^T P z in the norm of the whole loop
length          length that weighs as much as one radian
lower, upper    lower D <= P <= upper D, D = diag(1 / length^2 for metres, 1 for radians)
L, M            multipliers in A(x), see `_recheck`: 2 n rows, n columns
reduction       rotation vectors that the boxes must cover:
                "all": all of them, with the components of all factors in order;
                "two octants": for SO3, those with the first two components nonnegative; P, L, M
                and the gains must be diagonal in each block of three;
                "one axis, one plane": for SO3 and SE3, (0, 0, t) with t nonnegative, and rho in
                the plane of the first and third axis; P, L, M and the gains must be multiples
                of the identity in each block of three, and couple no position with a rotation;
                "linear": none, for abelian groups; "scalar": none, for SO3 and S2 and matrices as
                for "one axis, one plane", of S2 in blocks of two
boxes           list of boxes; a box is a list of [lower, upper] for each coordinate
==============  ==================================================================================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from concur.certify._recheck_finding import require
from concur.certify._recheck_rational import Matrix, definite, symmetric
from concur.certify._recheck_work import LARGEST_FILE, spend
from concur.certify._status import Status
from concur.documents import read_document
from concur.errors import DescriptionError

FORMAT = "concur certificate"
OPERATING = "concur operating box"
TUBE = "concur tube"
INTEGRAL = "concur integral certificate"
VERSION = 1

GAINS = ("stiffness", "damping", "inertia")
"""Names of KP, KD and I in the section of a law."""

CHAIN_STEPS, CHAIN_STRIDE = 512, 16
"""Steps of time of a chain, and steps between the starts of its tails."""

LONGEST = 400
"""Largest number of entries of a vector."""

# Unit of each component of the groups that a law may have.
UNITS = {
    "R1": ("m",),
    "R2": ("m", "m"),
    "R3": ("m", "m", "m"),
    "SO2": ("rad",),
    "SE2": ("m", "m", "rad"),
    "SO3": ("rad", "rad", "rad"),
    "S2": ("rad", "rad"),
    "SE3": ("m", "m", "m", "rad", "rad", "rad"),
}
_REDUCTIONS = ("all", "two octants", "one axis, one plane", "linear", "scalar")
_WITHOUT_BOXES = ("linear", "scalar")


def law_hash(groups: list[str], *gains: Any) -> str:
    """SHA-256 of the groups' names and the rows of KP, KD and I in C's hexadecimal notation."""
    rows = [[[(float(x) + 0.0).hex() for x in row] for row in gain] for gain in gains]
    return hashlib.sha256(json.dumps([list(groups), *rows]).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class StoredChannel:
    """Proof of one channel, with its blocks of the law's gains."""

    where: str
    components: list[int]
    groups: list[str]
    kp: Matrix
    kd: Matrix
    metric: Matrix
    p: Matrix
    left: Matrix
    right: Matrix
    rate: Fraction
    angle: Fraction | None
    distance: Fraction | None
    bound: Fraction | None
    weight: Fraction
    length: Fraction
    lower: Fraction
    upper: Fraction
    reduction: str
    boxes: np.ndarray
    status: Status

    @property
    def size(self) -> int:
        return len(self.components)

    @property
    def spans(self) -> list[tuple[str, int]]:
        """Groups with the index of their first component."""
        spans, start = [], 0
        for group in self.groups:
            spans.append((group, start))
            start += len(UNITS[group])
        return spans

    @property
    def units(self) -> list[str]:
        return [unit for group in self.groups for unit in UNITS[group]]

    @property
    def rotations(self) -> list[list[int]]:
        """Components of each rotation."""
        places = {"SO2": [0], "SE2": [2], "S2": [0, 1], "SO3": [0, 1, 2], "SE3": [3, 4, 5]}
        return [[start + i for i in places[g]] for g, start in self.spans if g in places]

    @property
    def positions(self) -> list[list[int]]:
        """Components of each position that a rotation acts on."""
        places = {"SE2": [0, 1], "SE3": [0, 1, 2]}
        return [[start + i for i in places[g]] for g, start in self.spans if g in places]

    @property
    def turning(self) -> list[list[int]]:
        """Components that B depends on and that boxes cover."""
        places = {"SE2": [2], "S2": [0, 1], "SO3": [0, 1, 2], "SE3": [3, 4, 5]}
        return [[start + i for i in places[g]] for g, start in self.spans if g in places]

    @property
    def varied(self) -> list[int]:
        """Components of x that are coordinates of a box."""
        places = [i for block in self.turning for i in block]
        return places[-1:] if self.reduction == "one axis, one plane" else places


@dataclass(frozen=True, eq=False)
class StoredProof:
    status: Status
    rate: Fraction | None
    overshoot: Fraction | None
    groups: list[str]
    gains: dict[str, Matrix]
    channels: list[StoredChannel]
    counterexample: tuple[int, list[Fraction], list[Fraction]] | None


def refuse(where: str, expected: str, came: object, cure: str = "") -> NoReturn:
    raise DescriptionError(
        f"certificate, {where}",
        expected=expected,
        came=str(came) if isinstance(came, str) else f"{type(came).__name__} {came!r:.60}",
        cure=cure or "Write it again with `Certificate.save`.",
    )


def load(path: Path) -> dict[str, Any]:
    """Read a document of a supported format and check its hash."""
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        size = 0  # reading raises the error
    require(size <= LARGEST_FILE, Status.UNDECIDED, f"a file of {size} bytes is not read")
    cures = (
        "Write it again with `Certificate.save`.",
        "Certify the law again: the file was changed after it was written.",
    )
    return read_document(path, (FORMAT, TUBE, OPERATING, INTEGRAL), VERSION, "certificate", cures)


def law_of_document(document: dict[str, Any]) -> tuple[list[str], dict[str, Matrix], int]:
    """Groups, gains and size of the law of a document."""
    law = object_of(document, "law", "")
    groups = list_of(law, "groups", "law")
    for group in groups:
        if not isinstance(group, str) or group not in UNITS:
            refuse("`law.groups`", "names from " + ", ".join(UNITS), group)
    size = sum(len(UNITS[group]) for group in groups)
    if size == 0:
        refuse("`law.groups`", "at least one group", groups)
    gains = {name: matrix_of(law, name, "law", size, size) for name in GAINS}
    expected = law_hash(groups, *gains.values())
    if law.get("hash") != expected:
        cure = "Certify the law again: its groups or gains were changed."
        refuse("`law.hash`", expected, law.get("hash"), cure)

    return groups, gains, size


def proof_of(document: dict[str, Any]) -> StoredProof:
    """Certificate of the error dynamics from its document."""
    groups, gains, size = law_of_document(document)
    plain = object_of(document, "law", "").get("integral") is None
    require(plain, Status.UNDECIDED, "the law has integral action; use certify_integral")
    channels = [
        channel_of(entry, f"channels[{k}]", groups, gains, size)
        for k, entry in enumerate(list_of(document, "channels", ""))
    ]
    return StoredProof(
        status=status_of(document, ""),
        rate=maybe_of(document, "rate", ""),
        overshoot=maybe_of(document, "overshoot", ""),
        groups=groups,
        gains=gains,
        channels=channels,
        counterexample=_counterexample(document, channels),
    )


def components_of(entry: Any, where: str, size: int) -> list[int]:
    """Components of a channel among those of the law, ascending."""
    if not isinstance(entry, dict):
        refuse(f"`{where}`", "an object", entry)
    components = places_of(entry, "components", where, below=size)
    if not components or any(b <= a for a, b in pairwise(components)):
        refuse(f"`{where}.components`", "ascending integers", components)
    return components


def blocks_of(gains: dict[str, Matrix], components: list[int]) -> dict[str, Matrix]:
    """Blocks of the gains that belong to some components."""
    return {
        name: [[gain[i][j] for j in components] for i in components] for name, gain in gains.items()
    }


def check_partition(
    groups: list[str], gains: dict[str, Matrix], parts: Sequence[list[int]]
) -> None:
    """Verify that the components of channels are the whole loop, and that no gain couples them."""
    size = sum(len(UNITS[group]) for group in groups)
    places = sorted(i for part in parts for i in part)
    require(places == list(range(size)), Status.UNDECIDED, "the channels are not the whole loop")
    owner = {i: k for k, part in enumerate(parts) for i in part}
    for name, gain in gains.items():
        for i, row in enumerate(gain):
            for j, entry in enumerate(row):
                apart = owner[i] == owner[j] or not entry
                require(apart, Status.UNDECIDED, f"law.{name}[{i}][{j}] couples two channels")


def check_channels(proof: Any, region: Callable[[Any], None]) -> None:
    """Verify what a certificate and its channels claim: proofs, matrices, rates and regions."""
    require(proof.status is Status.PROVED, Status.UNDECIDED, "the certificate claims no proof")
    check_partition(proof.groups, proof.gains, [channel.components for channel in proof.channels])
    for channel in proof.channels:
        where = channel.where
        require(channel.status is Status.PROVED, Status.UNDECIDED, f"{where} claims no proof")
        sound = symmetric(channel.p) and definite(channel.p)
        require(sound, Status.REFUTED, f"{where}.P is not symmetric positive definite")
        require(channel.rate > 0, Status.UNDECIDED, f"{where}.rate is not above zero")
        region(channel)
    slowest = min(channel.rate for channel in proof.channels)
    fit = proof.rate is not None and 0 < proof.rate <= slowest
    require(fit, Status.UNDECIDED, "the rate is not above zero, or exceeds that of a channel")


def channel_of(
    entry: Any, where: str, groups: list[str], gains: dict[str, Matrix], size: int
) -> StoredChannel:
    components = components_of(entry, where, size)
    spend(0.5 * len(groups) * (1 + len(components)))
    own, start = [], 0
    for group in groups:
        span = set(range(start, start + len(UNITS[group])))
        start += len(span)
        if span <= set(components):
            own.append(group)
        elif span & set(components):
            refuse(f"`{where}.components`", "whole groups", components)
    reduction = entry.get("reduction")
    if reduction not in _REDUCTIONS:
        refuse(f"`{where}.reduction`", "one of " + ", ".join(_REDUCTIONS), reduction)
    n = len(components)
    cut = blocks_of(gains, components)
    channel = StoredChannel(
        where=where,
        components=components,
        groups=own,
        kp=cut["stiffness"],
        kd=cut["damping"],
        metric=cut["inertia"],
        p=matrix_of(entry, "P", where, 2 * n, 2 * n),
        left=matrix_of(entry, "L", where, 2 * n, n),
        right=matrix_of(entry, "M", where, 2 * n, n),
        rate=number_of(entry, "rate", where),
        angle=maybe_of(entry, "angle", where),
        distance=maybe_of(entry, "distance", where),
        bound=maybe_of(entry, "bound", where),
        weight=number_of(entry, "weight", where),
        length=number_of(entry, "length", where),
        lower=number_of(entry, "lower", where),
        upper=number_of(entry, "upper", where),
        reduction=reduction,
        boxes=np.zeros((0, 0, 2)),
        status=status_of(entry, where),
    )
    fitting = {
        "all": bool(channel.turning) and "S2" not in own,
        "two octants": own == ["SO3"],
        "one axis, one plane": own in (["SO3"], ["SE3"]),
        "linear": not channel.turning,
        "scalar": own in (["SO3"], ["S2"]),
    }
    if not fitting[reduction]:
        refuse(f"`{where}.reduction`", "a reduction for " + ", ".join(own), reduction)
    boxes = _boxes(entry, where, len(channel.varied))
    if reduction in _WITHOUT_BOXES and len(boxes):
        refuse(
            f"`{where}.boxes`",
            f"no boxes, as the reduction is `{reduction}`",
            f"{len(boxes)} boxes",
        )
    object.__setattr__(channel, "boxes", boxes)
    return channel


def _boxes(entry: dict[str, Any], where: str, width: int) -> np.ndarray:
    boxes = list_of(entry, "boxes", where)
    where = f"`{where}.boxes`"
    for box in boxes:
        if not isinstance(box, list) or len(box) != width:
            refuse(where, f"boxes of {width} pairs", box)
        for pair in box:
            if not isinstance(pair, list) or len(pair) != 2:
                refuse(where, "pairs of numbers", pair)
            low, high = (float_of(x, where) for x in pair)
            if not low < high:
                refuse(where, "lower below upper", pair)
    return np.array(boxes, dtype=float).reshape(len(boxes), width, 2)


def _counterexample(
    document: dict[str, Any], channels: list[StoredChannel]
) -> tuple[int, list[Fraction], list[Fraction]] | None:
    if "counterexample" not in document:
        refuse("`counterexample`", "an object or null", "no value")
    entry = document["counterexample"]
    if entry is None:
        return None
    if not isinstance(entry, dict):
        refuse("`counterexample`", "an object or null", entry)
    k = integer_of(entry.get("channel"), "`counterexample.channel`", below=len(channels))
    x, direction = (
        vector_of(entry, name, "counterexample", size)
        for name, size in (("x", channels[k].size), ("direction", 2 * channels[k].size))
    )
    return k, x, direction


def _at(where: str, name: str) -> str:
    return f"`{where}.{name}`" if where else f"`{name}`"


def object_of(table: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = table.get(name)
    if not isinstance(value, dict):
        refuse(_at(where, name), "an object", value)
    return value


def list_of(table: dict[str, Any], name: str, where: str, count: int | None = None) -> list[Any]:
    value = table.get(name)
    if not isinstance(value, list):
        refuse(_at(where, name), "a list", value)
    if count is not None and len(value) != count:
        refuse(_at(where, name), f"a list of {count}", f"a list of {len(value)}")
    return value


def rows_of(
    table: dict[str, Any], name: str, where: str, height: int, width: int
) -> list[list[Any]]:
    rows = list_of(table, name, where, height)
    for row in rows:
        if not isinstance(row, list) or len(row) != width:
            refuse(_at(where, name), f"rows of {width}", row)
    return rows


def integer_of(value: Any, where: str, below: float) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        most = f", below {below}" if below < math.inf else ""
        refuse(where, f"an integer, not negative{most}", value)
    return value


def places_of(
    table: dict[str, Any], name: str, where: str, count: int | None = None, below: float = math.inf
) -> list[int]:
    """Read a list of different indices."""
    values = list_of(table, name, where, count)
    places = [integer_of(value, _at(where, name), below) for value in values]
    if len(set(places)) < len(places):
        refuse(_at(where, name), "different indices", places)
    return places


def float_of(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(where, "a number", value)
    # Larger numbers could overflow in products of a few of them.
    if not abs(value) < 1e60 or Fraction(value) != Fraction(float(value)):
        refuse(where, "a float64 below 1e60", value)
    return float(value)


def number_of(table: dict[str, Any], name: str, where: str) -> Fraction:
    return Fraction(float_of(table.get(name), _at(where, name)))


def floats_of(table: dict[str, Any], name: str, where: str, count: int | None = None) -> np.ndarray:
    values = list_of(table, name, where, count)
    if len(values) > LONGEST:
        refuse(_at(where, name), f"at most {LONGEST} numbers", f"{len(values)}")
    return np.array([float_of(value, _at(where, name)) for value in values], dtype=float)


def vector_of(table: dict[str, Any], name: str, where: str, count: int) -> list[Fraction]:
    return [Fraction(value) for value in floats_of(table, name, where, count).tolist()]


def maybe_of(table: dict[str, Any], name: str, where: str) -> Fraction | None:
    if name not in table:
        refuse(_at(where, name), "a number or null", "no value")
    return None if table[name] is None else number_of(table, name, where)


def matrix_of(table: dict[str, Any], name: str, where: str, height: int, width: int) -> Matrix:
    rows = rows_of(table, name, where, height, width)
    return [[Fraction(float_of(x, _at(where, name))) for x in row] for row in rows]


def status_of(table: dict[str, Any], where: str) -> Status:
    value = table.get("status")
    if not isinstance(value, str) or value not in Status.__members__:
        refuse(_at(where, "status"), "one of " + ", ".join(Status.__members__), value)
    return Status[value]
