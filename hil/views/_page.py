"""Content of the dashboard's page: card, tables and style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from html import escape
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hil.guard import Flag
from hil.reasons import Reason, State

SILENCE = 0.5
"""Time without a new cycle after which the page shows a warning, s."""

ASKED = 0.25
"""Time between two requests of the browser for new content, s."""

DEAD = 1.0
"""Time without an answer after which the page marks its button as dead, s."""

OLD = 3.0
"""Time without new content after which the browser marks the page as frozen, s."""

_Member = TypeVar("_Member", bound=IntEnum)

_COLORS = {
    State.DISARMED: "#5f6b76",
    State.ARMED: "#b26a00",
    State.RUN: "#1b7f3b",
    State.STOP: "#b71c1c",
}
_DONE = "#1f5fa8"
STYLE = f"""<style>
@keyframes hil-old {{ 0%, 99% {{ visibility: hidden; }} 100% {{ visibility: visible; }} }}
.hil-old {{ animation: hil-old {OLD}s linear forwards; position: absolute; inset: 0;
  background: #ffd400; color: #000; padding: 0.7em; border-radius: 6px; font-weight: 700; }}
.hil-card {{ position: relative; color: #fff; padding: 0.7em 0.9em; border-radius: 6px;
  margin: 0 0.6em 0.6em; min-height: 6.2em; }}
.hil-card h2 {{ margin: 0; font-size: 1.7em; line-height: 1.2; }}
.hil-note {{ font-size: 0.85em; line-height: 1.35; }}
p.hil-note {{ margin: 0.6em 0.8em; }}
.hil-bad {{ color: #b71c1c; font-weight: 700; }}
.hil-table {{ width: calc(100% - 1.6em); margin: 0 0.8em 0.6em; border-collapse: collapse;
  font-size: 0.82em; line-height: 1.5; font-variant-numeric: tabular-nums; }}
.hil-table th {{ text-align: right; font-weight: 600; border-bottom: 1px solid #bbb; }}
.hil-table td {{ text-align: right; }}
.hil-table th:first-child, .hil-table td:first-child {{ text-align: left; }}
body {{ margin: 0; display: flex; height: 100vh; font-family: system-ui, sans-serif; }}
#hil-side {{ width: 340px; flex: none; overflow-y: auto; padding-top: 0.6em; }}
#hil-stop {{ position: sticky; top: 0; background: #fff; padding: 0 0.6em 0.3em; margin: 0; }}
#hil-stop button {{ width: 100%; height: 4.2rem; font-size: 2rem; font-weight: 800;
  letter-spacing: 0.1em; color: #fff; background: #c80000; border: 0; border-radius: 6px; }}
#hil-stop button:disabled {{ background: #999; }}
#hil-stop iframe {{ width: 100%; height: 2.6em; border: 0; }}
#hil-dead {{ background: #ffd400; padding: 0.6em; border-radius: 6px; font-weight: 700; }}
#hil-view {{ flex: 1; border: 0; }}
</style>"""

_SCRIPT = """
const places = ["card", "answer", "axes", "quality"], shown = {}, dead = $("hil-dead");
function $(name) { return document.getElementById(name); }
let heard = performance.now();
setInterval(() => { dead.hidden = performance.now() - heard < DEAD; }, 100);
async function ask() {
  try {
    const answer = await fetch("/state", { signal: AbortSignal.timeout(DEAD), cache: "no-store" });
    if (!answer.ok) throw answer.status;
    const words = await answer.json();
    heard = performance.now();
    if (words.viewer !== VIEWER) location.reload();
    for (const place of places)
      if (shown[place] !== words[place]) $("hil-" + place).innerHTML = shown[place] = words[place];
    $("hil-press").disabled = !words.stops;
  } catch {}
  setTimeout(ask, ASKED);
}
ask();
"""


def shell(name: str, viewer: str, port: int, stops: bool, nonce: str) -> str:
    """The page: the stop button as a plain form, and elements for changing content.

    The page loads itself again when the viewer's `port` is another one: 0 before it listens.
    """
    script = _SCRIPT
    for word, value in (("DEAD", 1e3 * DEAD), ("ASKED", 1e3 * ASKED), ("VIEWER", port)):
        script = script.replace(word, f"{value:.0f}")
    frame = (
        f'<iframe id="hil-view" src="{escape(viewer)}" sandbox="{_MAY}"></iframe>' if viewer else ""
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title>'
        f'{STYLE}</head><body><div id="hil-side"><div id="hil-card"></div>'
        '<form id="hil-stop" method="post" action="/stop" target="hil-response">'
        f'<button id="hil-press"{"" if stops else " disabled"}>STOP</button>'
        '<div id="hil-dead" hidden>THE BUTTON IS DEAD: the dashboard does not answer. Use the '
        'emergency stop.</div><iframe name="hil-response"></iframe></form>'
        '<div id="hil-answer"></div><div id="hil-axes"></div><div id="hil-quality"></div></div>'
        f'{frame}<script nonce="{nonce}">{script}</script></body></html>'
    )


_MAY = "allow-scripts allow-same-origin"
"""Permissions of the viewer's frame, which must not replace the page or open another one."""


def member(kind: type[_Member], value: float) -> _Member | None:
    """The member of an enumeration for a number in a row; None if there is none."""
    try:
        return kind(int(value))
    except (ValueError, OverflowError):
        return None


def number(value: float, form: str = ".3f") -> str:
    """A number as text; a dash if it is not finite."""
    return format(value, form) if math.isfinite(value) else "–"


def silence(written: int, closed: bool, alive: bool, silent: float, state: State | None) -> str:
    """Warning about a loop that has been silent for some seconds; "" if there is none."""
    if not alive and not closed:
        return "The controller's process has ended. The watchdogs of the drives stop them."
    if closed or (state is State.STOP and silent > SILENCE):
        return "The loop has ended; this is its last cycle."
    if not written:
        return "No cycle yet: the run is being prepared."
    if silent > SILENCE:
        return f"No new cycle for {silent:.1f} s: the loop hangs or waits."
    return ""


def card(
    name: str,
    row: dict[str, NDArray[np.float64]] | None,
    duration: float,
    note: str,
    beat: int | None,
) -> str:
    """State, reason and time of the run, as HTML.

    The browser marks the card as frozen if `beat` does not change for a while, unless it is None.
    """
    state = None if row is None else member(State, row["state"][0])
    reason = None if row is None else member(Reason, row["reason"][0])
    paint = _COLORS[State.DISARMED if state is None else state]
    lines = []
    if row is None:
        title = "NOT ARMED YET"
    elif state is None:
        title = "STATE UNKNOWN"
    else:
        title = state.name
        if state is State.STOP and reason is Reason.END:
            title, paint = "STOP: task done", _DONE
        lines.append(_sentence(state.sentence))
        if reason:
            lines.append(f"<b>{reason.name}</b>: {reason.sentence}.")
        elapsed = row["elapsed"][0]
        if math.isfinite(elapsed):
            lines.append(f"{elapsed:.1f} s of {duration:.1f} s")
    if note:
        lines.append(f"<b>{note}</b>")
        paint = paint if state is State.STOP or row is None else "#b71c1c"
    frozen = ""
    if beat is not None:
        frozen = (
            f'<div class="hil-old" data-beat="{beat}">FROZEN: no new data from the dashboard. The '
            "values are old, and the button may be dead. Use the emergency stop.</div>"
        )
    body = "".join(f'<div class="hil-note">{line}</div>' for line in lines)
    return (
        f'<div class="hil-card" style="background:{paint}"><div class="hil-note">{escape(name)}'
        f'</div><h2 id="hil-state">{title}</h2>'
        f"{body}{frozen}</div>"
    )


def axes_table(
    names: Sequence[str], limits: Sequence[float], row: dict[str, NDArray[np.float64]]
) -> str:
    """Positions, torques and drives, as HTML."""
    lines = []
    for k, name in enumerate(names):
        torque = row["torque"][k]
        share, fault = abs(torque) / limits[k], row["fault"][k]
        drive = "on" if row["enabled"][k] == 1.0 else "off"
        if fault:  # NaN too
            code = f"0x{int(fault):X}" if math.isfinite(fault) else "?"
            drive = f'<span class="hil-bad">fault {code}</span>'
        bad = ' class="hil-bad"' if not share < 0.95 else ""
        lines.append(
            f'<tr data-axis="{escape(name)}"><td>{escape(name)}</td>'
            f"<td>{number(row['position'][k])}</td><td>{number(torque)}</td>"
            f"<td{bad}>{number(100.0 * share, '.0f')} % of {limits[k]:g}</td><td>{drive}</td></tr>"
        )
    return (
        '<table class="hil-table"><tr><th>axis</th><th>rad</th><th>N m</th>'
        f"<th>limit</th><th>drive</th></tr>{''.join(lines)}</table>"
    )


def quality_table(
    row: dict[str, NDArray[np.float64]],
    recent: dict[str, NDArray[np.float64]],
    limits: str | None = None,
) -> str:
    """Counters, cycle times, actions of the guard and active limits of the law, as HTML."""

    def pair(values: NDArray[np.float64]) -> str:
        known = 1e6 * values[np.isfinite(values)]
        return f"{np.median(known):.0f}, at most {known.max():.0f} µs" if known.size else "–"

    words = {
        name: number(row[column][0], ".0f")
        for name, column in (
            ("cycles", "cycle"),
            ("late cycles", "late"),
            ("missing reports", "lost"),
            ("limited cycles", "clipped"),
        )
    }
    flags = recent["flags"][np.isfinite(recent["flags"])].astype(int)
    seen = Flag(int(np.bitwise_or.reduce(flags))) if flags.size else Flag.NONE
    names = [str(flag.name).lower().replace("_", " ") for flag in seen]
    words["guard, last second"] = ", ".join(names) or "no change"
    if limits is not None:
        words["limits of the law, last second"] = escape(limits) or "none active"
    words["lateness, last second"] = pair(recent["time"] - recent["deadline"])
    words["computing, last second"] = pair(recent["compute"])
    if math.isfinite(row["pose_age"][0]):
        words["age of the external pose"] = f"{1e3 * row['pose_age'][0]:.1f} ms"
    lines = "".join(
        f'<tr data-name="{name}"><td>{name}</td><td>{value}</td></tr>'
        for name, value in words.items()
    )
    return f'<table class="hil-table">{lines}</table>'


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."
