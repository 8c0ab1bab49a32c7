"""Limits that the law keeps, in the rows of a rig."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from hil.reasons import State
from hil.record.rows import Layout
from hil.views._page import quality_table
from hil.views.figures import active_limits
from tests.hil._records import make_rig, task_and_servo


def test_active_limits_are_named_in_rows_and_views(tmp_path):
    rig = make_rig(tmp_path)
    servo = task_and_servo()[1]
    plain = Layout.of([axis.name for axis in rig.axes], servo)
    assert "active" not in plain.spans
    limits = ("torque of elbow", "position <of> arm")
    layout = Layout(plain.axes, plain.nq, plain.ns, plain.pose_size, plain.size, limits)
    assert Layout.from_dict(layout.to_dict()) == layout
    assert layout.width == plain.width + 2
    rows = np.zeros((4, layout.width))
    views = layout.views(rows)
    views["state"][:] = State.RUN
    views["state"][3] = State.STOP
    views["active"][1] = 0, 1
    views["active"][3] = 1, 0  # outside of the run
    named = [layout.active(layout.views(row)) for row in rows]
    assert named == ["", limits[1], "", limits[0]]
    assert layout.active(views) == ", ".join(limits)
    page = quality_table(layout.views(rows[1]), views, layout.active(layout.views(rows[1])))
    assert "position &lt;of&gt; arm" in page

    class Record(SimpleNamespace):
        def __len__(self):
            return len(rows)

        def __getitem__(self, name):
            part = views[name]
            return part if name == "active" else part[:, 0]

    found = active_limits(Record(layout=layout))
    assert list(found) == [limits[1]]
    assert found[limits[1]].tolist() == [False, True, False, False]
