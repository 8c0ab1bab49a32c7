"""Figures of a certificate: its bound over motions, its rate over the angle, and its tubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from concur.show.errors import TIME
from concur.show.style import ARM, PALETTE, REFERENCE, logarithmic, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from concur.show.style import Floats

# Fraction of the initial norm at the lower edge of the figure.
_LEAST = 1e-6


class StatusLike(Protocol):
    """Status of a certificate."""

    @property
    def name(self) -> str: ...


class CertificateLike(Protocol):
    """Attributes of a certificate that the figures read; angle in rad, rates in 1/s."""

    @property
    def status(self) -> StatusLike: ...
    @property
    def angle(self) -> float: ...
    @property
    def rate(self) -> float: ...
    @property
    def true_rate(self) -> float: ...


class DecayLike(Protocol):
    """Norms along motions of the error dynamics; `own` is from the task's start, if covered."""

    @property
    def t(self) -> Floats: ...
    @property
    def norms(self) -> Floats: ...
    @property
    def own(self) -> Floats | None: ...


class TubeLike(Protocol):
    """Attributes of a tube that the figures read: bounds of |z|_P, angle (rad) and distance (m)."""

    @property
    def status(self) -> StatusLike: ...
    @property
    def limit(self) -> float: ...
    @property
    def radius(self) -> float: ...
    @property
    def angle(self) -> float | None: ...
    @property
    def distance(self) -> float | None: ...
    def envelope(self, time: float) -> float: ...


class DisturbedLike(Protocol):
    """Errors along disturbed motions, each of shape (m, k): norms, angles and distances."""

    @property
    def t(self) -> Floats: ...
    @property
    def norms(self) -> Floats: ...
    @property
    def angles(self) -> Floats | None: ...
    @property
    def distances(self) -> Floats | None: ...


def decay_figure(certificate: CertificateLike, decay: DecayLike) -> Figure:
    """Draw the certified bound over the norms of simulated motions.

    Parameters
    ----------
    certificate : CertificateLike
        A proved certificate with `rate` and `true_rate`, 1/s.
    decay : DecayLike
        Motions: `t` (k,), s, `norms` (m, k), the certificate's norm along m motions, and `own`
        (k,), along that from the task's start, or None.

    Returns
    -------
    matplotlib.figure.Figure
        One logarithmic panel of all norms, each divided by its start, below one common bound.

    Examples
    --------
    >>> decay_figure(certificate, decay).savefig("decay.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(8.0, 4.8)
        axes = figure.subplots()
        t, count = np.asarray(decay.t), len(decay.norms)
        for k, norm in enumerate(np.asarray(decay.norms)):
            axes.plot(
                t,
                norm / norm[0],
                color=PALETTE[5],
                linewidth=0.8,
                linestyle="-",
                alpha=0.7,
                label=f"{count} random starts in the region" if k == 0 else "_",
            )
        own = decay.own
        if own is not None and own[0] > 0.0:
            axes.plot(t, own / own[0], color=ARM, linestyle="-", label="the task's start")
        axes.plot(
            t,
            np.exp(-certificate.rate * t),
            color=PALETTE[6],
            linestyle="-",
            linewidth=2.0,
            label=f"certified: exp(-{certificate.rate:.4g} t)",
        )
        axes.plot(
            t,
            np.exp(-certificate.true_rate * t),
            color=REFERENCE,
            linestyle="--",
            label=f"linearized rate: exp(-{certificate.true_rate:.4g} t)",
        )
        logarithmic(axes, _LEAST)
        axes.set_xlim(t[0], t[-1])
        axes.set_xlabel(TIME)
        axes.set_ylabel("norm of the error, relative to its start [1]")
        axes.set_title("Certified decay, and motions of the error dynamics")
        axes.legend(loc="lower left")
        return figure


def tube_figure(tube: TubeLike, motions: DisturbedLike) -> Figure:
    """Draw a tube with disturbed motions in it.

    Parameters
    ----------
    tube : TubeLike
        The tube of a channel, of finite radius.
    motions : DisturbedLike
        Motions under disturbances within its bound: `t` (k,), s, `norms` (m, k), and `angles`,
        rad, and `distances`, m, of shape (m, k) or None.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for the norm, with its bound over time and the limit of the domain, and one each
        for rotation errors in degrees and position errors in metres, with theirs.

    Examples
    --------
    >>> tube_figure(tube, disturbed_motions(tube, 0.1)).savefig("tube.png")    # doctest: +SKIP
    """
    lengths: list[tuple[Floats, float, str]] = []
    if motions.angles is not None and tube.angle is not None:
        lengths.append((np.degrees(motions.angles), np.degrees(tube.angle), "rotation error [deg]"))
    if motions.distances is not None and tube.distance is not None:
        lengths.append((np.asarray(motions.distances), tube.distance, "position error [m]"))
    t, norms = np.asarray(motions.t), np.asarray(motions.norms)
    with styled():
        figure = new_figure(8.0, 2.2 + 1.9 * len(lengths))
        rows = figure.subplots(1 + len(lengths), 1, sharex=True, squeeze=False)[:, 0]
        certain = "proved" if tube.status.name == "PROVED" else "not proved"
        bound = np.array([tube.envelope(float(time)) for time in t])
        _motions(rows[0], t, norms, f"{len(norms)} disturbed motions")
        rows[0].plot(
            t, bound, color=PALETTE[6], linestyle="-", linewidth=2.0, label=f"bound, {certain}"
        )
        top = max(float(bound.max()), float(norms.max()))
        # Omit a distant limit: it would flatten the curves.
        if tube.limit < 3.0 * top:
            rows[0].axhline(
                tube.limit, color=PALETTE[1], linestyle="--", label="limit of the domain"
            )
            top = max(top, tube.limit)
        rows[0].set_ylim(0.0, 1.1 * top or 1.0)
        rows[0].set_ylabel("norm of the error [1]")
        rows[0].set_title("Tube of the error, and motions under disturbances")
        for axes, (values, most, label) in zip(rows[1:], lengths, strict=True):
            _motions(axes, t, values, "_")
            # A length of x is at most a multiple of the norm, so its bound is proportional.
            share = bound / tube.radius if tube.radius > 0.0 else np.ones_like(bound)
            axes.plot(
                t,
                most * share,
                color=PALETTE[6],
                linestyle="-",
                linewidth=2.0,
                label=f"bound, {certain}",
            )
            axes.set_ylim(0.0, 1.1 * max(most, float(values.max())) or 1.0)
            axes.set_ylabel(label)
        for axes in rows:
            axes.set_xlim(t[0], t[-1])
            axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        rows[-1].set_xlabel(TIME)
        return figure


def _motions(axes: Axes, t: Floats, values: Floats, label: str) -> None:
    for k, value in enumerate(values):
        axes.plot(
            t,
            value,
            color=PALETTE[5],
            linewidth=0.8,
            linestyle="-",
            alpha=0.7,
            label=label if k == 0 else "_",
        )


def rate_figure(
    sweeps: Mapping[str, Sequence[CertificateLike]], asked: CertificateLike | None = None
) -> Figure:
    """Draw certified rates over the largest rotation error covered.

    Parameters
    ----------
    sweeps : mapping of str to sequence of CertificateLike
        Maps the name of a method to its certificates by ascending angle. Unproved ones are
        hollow and not joined to the steps.
    asked : CertificateLike, optional
        The requested certificate, which is marked.

    Returns
    -------
    matplotlib.figure.Figure
        One panel with the linearized rate as the upper bound.

    Examples
    --------
    >>> rate_figure({"tight": certificates}).savefig("rates.png")    # doctest: +SKIP
    """
    with styled():
        figure = new_figure(8.0, 4.8)
        axes = figure.subplots()
        every = [one for found in sweeps.values() for one in found]
        most = max(one.true_rate for one in every)
        axes.axhline(
            most, color=REFERENCE, linestyle="--", label=f"linearized rate, {most:.4g} 1/s"
        )
        for number, (method, found) in enumerate(sweeps.items()):
            dot: Any = {"color": PALETTE[number], "marker": "o"}
            proved = [one for one in found if one.status.name == "PROVED"]
            others = [one for one in found if one.status.name != "PROVED"]
            if proved:
                # A proof for an angle holds for smaller angles: draw steps, not slanted lines.
                steps: Any = {"linestyle": "-", "drawstyle": "steps-pre"}
                axes.plot(*_points(proved), label=f"{method}, proved", **steps, **dot)
            if others:
                axes.plot(
                    *_points(others),
                    linestyle="none",
                    markerfacecolor="white",
                    label=f"{method}, not proved",
                    **dot,
                )
        if asked is not None:
            axes.plot(
                *_points([asked]),
                color=PALETTE[6],
                linestyle="none",
                marker="o",
                markersize=12.0,
                markerfacecolor="none",
                label=f"requested: {np.degrees(asked.angle):.4g} deg",
            )
        axes.set_xlim(0.0, 185.0)
        axes.set_xticks(range(0, 181, 30))
        axes.set_ylim(0.0, 1.15 * most)
        axes.set_xlabel("largest rotation error [deg]")
        axes.set_ylabel("rate of decay [1/s]")
        axes.set_title("Certified rate over the angle")
        # Outside the axes, as points may lie anywhere in them.
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
        return figure


def _points(found: Sequence[CertificateLike]) -> tuple[Floats, Floats]:
    angles = np.degrees([one.angle for one in found])
    return angles, np.array([one.rate for one in found])
