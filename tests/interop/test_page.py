"""The page on interop: its code runs, with stand-ins for the packages of ROS 2."""

from __future__ import annotations

import re
import socket
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil.settings import PoseSettings
from hil.state.pose_source import PoseReceiver
from tests.ports import free_udp_port

PAGE = (Path(__file__).parents[2] / "docs/interop.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


class Message:
    """A message whose fields appear when they are used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = Message()
        object.__setattr__(self, name, value)
        return value


class Node:
    """The parts of a node of ROS 2 that the page uses."""

    def __init__(self, name: str) -> None:
        self.published: list[Any] = []

    def create_publisher(self, kind: type, topic: str, depth: int) -> Any:
        return types.SimpleNamespace(publish=self.published.append)

    def create_subscription(self, *_: Any) -> None: ...

    def create_timer(self, *_: Any) -> None: ...

    def get_clock(self) -> Any:
        return types.SimpleNamespace(now=lambda: types.SimpleNamespace(to_msg=lambda: 0))


def test_code_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes: list[Any] = []
    kinds = {
        "rclpy": {"init": lambda: None, "spin": nodes.append},
        "rclpy.node": {"Node": Node},
        "nav_msgs.msg": {"Odometry": Message},
        "sensor_msgs.msg": {"JointState": Message},
    }
    for name, members in kinds.items():
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**members))  # type: ignore[misc]
    names: dict[str, Any] = {"__name__": "session"}
    port = free_udp_port()
    with PoseReceiver(PoseSettings("udp", port=0), "satellite") as receiver:
        for number, block in enumerate(BLOCKS):
            code = block.replace("47120", str(port)).replace("47111", str(receiver.port))
            exec(compile(code, f"docs/interop.md, block {number + 1}", "exec"), names)
        (node,) = nodes
        assert np.allclose(names["back"][0], names["q"])
        assert np.allclose(names["back"][1], names["v"])
        node.publish_state()  # nothing has come
        assert not node.published
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.sendto(names["datagram"], ("127.0.0.1", port))
        node.publish_state()
        joints, base = node.published
        state = names["state"]
        assert tuple(joints.name) == state.name
        assert np.allclose(joints.position, state.position)
        assert base.pose.pose.orientation.w == state.base_orientation[3]
        assert base.twist.twist.angular.z == state.base_angular[2]
        node.send_pose(base)
        (measured,) = receiver.poll(node.time.now())
        assert np.allclose(measured.position, state.base_position)
        assert np.allclose(measured.quaternion, state.base_orientation)
    node.udp.close()
    node.sender.close()
