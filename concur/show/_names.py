"""Names beside points of a figure, where they cover the least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from matplotlib.text import Annotation, Text

from concur.show._space import flat
from concur.show.style import Floats

_TURNS = np.linspace(0.0, 2 * np.pi, 16, endpoint=False)
_STEPS = np.stack([np.cos(_TURNS), np.sin(_TURNS)], axis=1)
# Distances of a name from its point, in typographic points.
_DISTANCES = (10.0, 18.0, 28.0, 40.0, 55.0, 75.0)


class _Name(Annotation):
    """A name that stays beside a point (2,) or (3,) of the axes when the view rotates."""

    def __init__(self, axes: Any, text: str, point: Floats) -> None:
        super().__init__(
            text,
            xy=(0.0, 0.0),
            xytext=(0.0, 0.0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=9,
            zorder=9,
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "alpha": 0.7, "linewidth": 0},
            arrowprops={"arrowstyle": "-", "color": "#777777", "linewidth": 0.7, "shrinkB": 3.0},
            annotation_clip=False,
            parse_math=False,
        )
        self.point = point
        axes.add_artist(self)
        # A name must neither shrink the axes in the layout nor be clipped at their frame.
        self.set_in_layout(False)
        self.set_clip_on(False)
        self.follow()

    def follow(self) -> None:
        ((x, y),) = flat(self.axes, self.point[None])
        self.xy = (float(x), float(y))

    def draw(self, renderer: Any) -> None:
        self.follow()
        super().draw(renderer)


def write_names(axes: Any, names: Sequence[tuple[str, Floats]], busy: Floats) -> None:
    """Write names beside points, each where it covers the other names and a drawing least.

    The drawing is given by points (n, 2 or 3), dense along its lines.
    """
    figure: Any = axes.get_figure().canvas.figure
    axes.apply_aspect()
    scale = figure.dpi / 72.0
    written = [_Name(axes, text, point) for text, point in names]
    places = np.array([axes.transData.transform(name.xy) for name in written])
    drawn = axes.transData.transform(flat(axes, busy))
    frame = np.array(figure.bbox.get_points())
    taken: list[tuple[Floats, Floats]] = []
    for name, place in zip(written, places, strict=True):
        # The text without its leader, in pixels.
        half = np.array(Text.get_window_extent(cast(Any, name)).size) / 2 + 2.0
        away = np.array([(half + scale * far) * step for far in _DISTANCES for step in _STEPS])
        centres = place + away
        cost = 0.3 * np.linalg.norm(away, axis=1) / scale
        for points, price in ((places, 60.0), (drawn, 3.0)):
            inside = np.abs(points[None] - centres[:, None]) < half + 2.0
            cost += price * inside.all(axis=2).sum(axis=1)
        for middle, other in taken:
            overlap = np.clip(half + other - np.abs(middle - centres), 0.0, None)
            cost += np.where(overlap.all(axis=1), 200.0 + overlap.prod(axis=1), 0.0)
        cost += 1e3 * np.any((centres - half < frame[0]) | (centres + half > frame[1]), axis=1)
        best = int(np.argmin(cost))
        name.set_position(tuple(away[best] / scale))
        taken.append((centres[best], half))
