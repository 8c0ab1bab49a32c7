"""URDF files of wheeled robots of ten kinds, as packages of robots describe them."""

from __future__ import annotations

import math

from tests.io.test_urdf import joint, link, robot

HULL = (
    '<inertial><origin xyz="0.02 0 0.1"/><mass value="20"/>'
    '<inertia ixx="0.6" iyy="0.8" izz="1"/></inertial>'
)
DISK = '<inertial><mass value="1"/><inertia ixx="0.002" iyy="0.003" izz="0.002"/></inertial>'
BLOCK = '<inertial><mass value="0.5"/><inertia ixx="0.001" iyy="0.001" izz="0.001"/></inertial>'
MESH = '<visual><geometry><mesh filename="package://shop/meshes/wheel.stl"/></geometry></visual>'


def wheel(name: str, x: float, y: float, z: float = 0.1, **more: str) -> str:
    """A wheel about y (or with another yaw of its joint) on `parent`, drawn or a mesh."""
    shape = f'<geometry><cylinder radius="{more.get("radius", "0.1")}" length="0.04"/></geometry>'
    shape = f'<collision><origin rpy="{math.pi / 2} 0 0"/>{shape}</collision>'
    place = f'<origin xyz="{x} {y} {z}" rpy="0 0 {more.get("yaw", "0")}"/>'
    content = f'{place}<axis xyz="{more.get("axis", "0 1 0")}"/>'
    parent = more.get("parent", "base_link")
    drawn = link(name, DISK + more.get("shape", shape))
    return drawn + joint(f"{name}_joint", "continuous", parent, name, content)


def mount(
    name: str,
    x: float,
    y: float,
    kind: str = "revolute",
    axis: str = "0 0 1",
    z: float = 0.1,
    parent: str = "base_link",
) -> str:
    """A steering or rocker link."""
    limit = '<limit lower="-1.2" upper="1.2" effort="9" velocity="2"/>' * (kind == "revolute")
    content = f'<origin xyz="{x} {y} {z}"/><axis xyz="{axis}"/>{limit}'
    return link(name, BLOCK) + joint(f"{name}_joint", kind, parent, name, content)


def plugin(name: str, **entries: str) -> str:
    """A plugin of Gazebo with its entries."""
    inner = "".join(f"<{key}>{text}</{key}>" for key, text in entries.items())
    return f'<gazebo><plugin name="drive" filename="lib{name}.so">{inner}</plugin></gazebo>\n'


def control(*names: str) -> str:
    """Joints of ros2_control with a velocity interface."""
    entry = '<joint name="{}"><command_interface name="velocity"/></joint>'
    joints = "".join(entry.format(name) for name in names)
    return f'<ros2_control name="system" type="system">{joints}</ros2_control>\n'


def transmission(name: str) -> str:
    """A transmission of one joint."""
    return f'<transmission name="{name}_tr"><joint name="{name}"/></transmission>\n'


def cart(*parts: str) -> str:
    """A file with a footprint and a hull."""
    foot = link("base_footprint", "") + link("base_link", HULL)
    return robot(foot, joint("foot", "fixed", "base_footprint", "base_link"), *parts)


def corners(prefix: str = "", **more: str) -> list[str]:
    return [
        wheel(f"{prefix}{end}_{side}_wheel", x, y, **more)
        for end, x in (("front", 0.3), ("rear", -0.3))
        for side, y in (("left", 0.25), ("right", -0.25))
    ]


CORNERS = [("fl", 0.3, 0.25), ("fr", 0.3, -0.25), ("rl", -0.3, 0.25), ("rr", -0.3, -0.25)]
MODULES = [
    mount(f"{n}_steer", x, y, "continuous") + wheel(f"{n}_wheel", 0, 0, 0, parent=f"{n}_steer")
    for n, x, y in CORNERS
]
ARM = link("upper_arm", BLOCK) + joint(
    "shoulder", "revolute", "base_link", "upper_arm", '<origin xyz="0 0 0.4"/><axis xyz="0 1 0"/>'
)
BALL = link(
    "caster_back", BLOCK + "<collision><geometry><sphere radius='0.02'/></geometry></collision>"
) + joint("caster_back_joint", "fixed", "base_link", "caster_back", '<origin xyz="-0.15 0 0.02"/>')
SWIVELS = [
    mount(f"{n}_caster_rotation", x, y, "continuous", z=0.15)
    + wheel(f"{n}_caster_wheel", -0.04, 0, -0.1, parent=f"{n}_caster_rotation", radius="0.05")
    for n, x, y in (("fl", 0.3, 0.2), ("fr", 0.3, -0.2))
]
ROCKERS = [
    mount(f"{s}_rocker", 0.1, y, axis="0 1 0", z=0.3)
    + mount(f"{s}_bogie", -0.3, 0, axis="0 1 0", z=0, parent=f"{s}_rocker")
    + mount(f"{s}_front_steer", 0.4, 0, z=-0.2, parent=f"{s}_rocker")
    + wheel(f"{s}_front_wheel", 0, 0, 0, parent=f"{s}_front_steer")
    + wheel(f"{s}_middle_wheel", 0.2, 0, -0.2, parent=f"{s}_bogie")
    + mount(f"{s}_rear_steer", -0.2, 0, z=-0.2, parent=f"{s}_bogie")
    + wheel(f"{s}_rear_wheel", 0, 0, 0, parent=f"{s}_rear_steer")
    for s, y in (("left", 0.3), ("right", -0.3))
]

ROBOTS = {
    "turtle_mesh": cart(
        wheel("wheel_left_link", 0, 0.08, 0.033, shape=MESH),
        wheel("wheel_right_link", 0, -0.08, 0.033, shape=MESH),
        BALL,
        plugin(
            "gazebo_ros_diff_drive",
            left_joint="wheel_left_link_joint",
            right_joint="wheel_right_link_joint",
            wheel_diameter="0.066",
        ),
    ),
    "turtle_drawn": cart(wheel("left", 0, 0.2), wheel("right", 0, -0.2), BALL),
    "husky": cart(
        *corners(shape=MESH), *(transmission(f"front_{s}_wheel_joint") for s in ("left", "right"))
    ),
    "jackal": cart(
        *corners(),
        plugin("SkidSteerDrivePlugin", leftFrontJoint="front_left_wheel_joint"),
    ),
    "ridgeback": cart(*corners(), plugin("gazebo_ros_mecanum", wheel_radius="0.1"), ARM),
    "swerve": cart(
        *MODULES, control(*(f"{n}_{k}_joint" for n, *_ in CORNERS for k in ("steer", "wheel")))
    ),
    "car": cart(
        *(
            mount(f"{s}_steer", 0.5, y) + wheel(f"f{s}_wheel", 0, 0, 0, parent=f"{s}_steer")
            for s, y in (("l", 0.25), ("r", -0.25))
        ),
        wheel("rl_wheel", 0, 0.25),
        wheel("rr_wheel", 0, -0.25),
        plugin(
            "gazebo_ros_ackermann_drive",
            front_left_joint="fl_wheel_joint",
            rear_left_joint="rl_wheel_joint",
        ),
    ),
    "omni": cart(
        *(
            wheel(
                f"wheel_{k}",
                0.2 * math.cos(a),
                0.2 * math.sin(a),
                axis="1 0 0",
                yaw=repr(a),
                shape=MESH,
            )
            for k, a in enumerate((math.pi / 3, math.pi, -math.pi / 3))
        )
    ),
    "casters_and_arm": cart(wheel("wheel_l", 0, 0.25), wheel("wheel_r", 0, -0.25), *SWIVELS, ARM),
    "rover": cart(*ROCKERS),
}
"""Text of a file by its kind."""


# --- the same families under other conventions ----------------------------------------------------

NAMES = {
    "numbers": "{:02d}".format,
    "parts of a drawing": "Part_{:d}^Assem1".format,
    "german": "rad_{:d}".format,
    "spanish": "rueda{:d}".format,
    "french": "roue_{:d}_link".format,
    "swedish": "hjul{:d}".format,
    "japanese": "車輪{:d}".format,
}
DRIVES = {
    "drawn": lambda *joints: "",
    "control": control,
    "transmissions": lambda *joints: "".join(
        f'<transmission name="t_{name}"><joint name="{name}"><hardwareInterface>'
        "hardware_interface/VelocityJointInterface</hardwareInterface></joint></transmission>"
        for name in joints
    ),
    "plugin": lambda *joints: plugin(
        "gazebo_ros_diff_drive", **{f"joint_{k}": name for k, name in enumerate(joints)}
    ),
}


def suspended(name: str, x: float, y: float, hold: str, parent: str, **more: str) -> str:
    """A wheel under a link of a suspension or a rocker, whose joint the file lets move."""
    axis, kind = {"spring": ("0 0 1", "prismatic"), "rocker": ("0 1 0", "revolute")}[hold]
    return mount(f"{name}_{hold}", x, y, kind, axis, 0.1, parent) + wheel(
        name, 0, 0, 0, parent=f"{name}_{hold}", **more
    )


def strange(family: str, names: str, drive: str, hold: str = "", shape: str = MESH) -> str:
    """A robot of a family with other names, other evidence of its motors, and suspensions."""
    called = [NAMES[names](k) for k in range(1, 9)]
    more = {"shape": shape} if shape else {}

    def one(k: int, x: float, y: float, parent: str = "hull") -> str:
        if hold:
            return suspended(called[k], x, y, hold, parent, **more)
        return wheel(called[k], x, y, parent=parent, **more)

    def module(k: int, x: float, y: float, kind: str) -> str:
        turn = called[k + 4]
        steer = mount(turn, x, y, kind, parent="hull")
        return steer + wheel(called[k], 0, 0, 0, parent=turn, **more)

    axles = {"differential": [0.0], "skid": [0.3, -0.3], "mecanum": [0.3, -0.3], "casters": [0.0]}
    places = [(x, y) for x in axles.get(family, [0.3, -0.3]) for y in (0.25, -0.25)]
    if family == "swerve":
        parts = [module(k, x, y, "continuous") for k, (x, y) in enumerate(places)]
        driven = [f"{called[k]}_joint" for k in range(8)]
    elif family == "car":
        parts = [module(k, x, y, "revolute") for k, (x, y) in enumerate(places[:2])]
        parts += [one(k, x, y) for k, (x, y) in enumerate(places) if k > 1]
        driven = [f"{called[k]}_joint" for k in (2, 3, 4, 5)]
    else:
        parts = [one(k, x, y) for k, (x, y) in enumerate(places)]
        driven = [f"{called[k]}_joint" for k in range(len(places))]
    if family == "mecanum":
        parts.append(plugin("mecanum_drive"))
    if family == "casters":
        parts += [
            mount("k1", -0.4, 0.0, "continuous", z=0.15, parent="hull"),
            wheel(
                "k2", -0.04, 0, -0.1, parent="k1", radius="0.05", shape=shape.replace("0.1", "0.05")
            ),
        ]
    return robot(link("hull", HULL), *parts, DRIVES[drive](*driven))


CYLINDER = (
    f'<visual><origin rpy="{math.pi / 2} 0 0"/><geometry><cylinder radius="0.1" length="0.04"/>'
    "</geometry></visual>"
)
STRANGERS = [  # family, names, motors, suspension, shape
    ("differential", "numbers", "drawn", "", MESH),
    ("differential", "numbers", "control", "rocker", MESH),
    ("differential", "parts of a drawing", "transmissions", "spring", MESH),
    ("differential", "japanese", "drawn", "", MESH),
    ("casters", "numbers", "control", "", CYLINDER),
    ("casters", "spanish", "plugin", "", CYLINDER),
    ("skid", "numbers", "plugin", "rocker", MESH),
    ("skid", "german", "drawn", "spring", CYLINDER),
    ("skid", "parts of a drawing", "drawn", "", MESH),
    ("mecanum", "numbers", "drawn", "", MESH),
    ("mecanum", "french", "control", "", CYLINDER),
    ("swerve", "numbers", "control", "", MESH),
    ("swerve", "swedish", "transmissions", "", CYLINDER),
    ("car", "numbers", "transmissions", "", MESH),
    ("car", "german", "control", "", CYLINDER),
    ("car", "numbers", "drawn", "", CYLINDER),
]
"""Robots as `strange` makes them."""


def rolled(name: str, x: float, y: float, angle: float) -> str:
    """A wheel with eight rollers, each on a joint, at an angle from the axle below."""
    text = wheel(name, x, y, parent="hull", shape="")
    for k in range(8):
        a = k * math.pi / 4.0
        place = f'<origin xyz="{0.08 * math.sin(a)} 0 {0.08 * math.cos(a)}" rpy="0 {a!r} 0"/>'
        # Below, at k = 4, the frame is turned by 180 degrees about the axle.
        axis = f'<axis xyz="{math.sin(angle)!r} {math.cos(angle)!r} 0"/>'
        text += link(f"{name}r{k}", BLOCK)
        text += joint(f"{name}j{k}", "continuous", name, f"{name}r{k}", place + axis)
    return text


PAIR = [wheel(name, 0, y, parent="hull") for name, y in (("a", 0.25), ("b", -0.25))]
COUPLED = '<mimic joint="1_joint"/></joint>'
LAYOUTS = {  # family, number of wheels, freedoms, file
    "rollers": (
        *("mecanum", 4, 3),
        robot(
            link("hull", HULL),
            *(
                rolled(str(k), x, y, math.copysign(math.pi / 4, x * y))
                for k, (x, y) in enumerate(((0.3, 0.25), (0.3, -0.25), (-0.3, 0.25), (-0.3, -0.25)))
            ),
        ),
    ),
    "coupled steering": (
        *("car", 4, 2),
        robot(
            link("hull", HULL),
            mount("1", 0.5, 0.25, parent="hull") + wheel("2", 0, 0, 0, parent="1"),
            mount("3", 0.5, -0.25, parent="hull").replace("</joint>", COUPLED),
            wheel("4", 0, 0, 0, parent="3"),
            *PAIR,
        ),
    ),
    "without inertia": (
        *("differential", 2, 2),
        robot(link("hull", HULL), *(text.replace(DISK, "") for text in PAIR)),
    ),
    "track": (
        *("skid", 10, 2),
        robot(
            link("hull", HULL),
            *(
                wheel(f"{k}{s}", 0.3 - 0.15 * k, 0.25 * s, parent="hull")
                for k in range(5)
                for s in (1, -1)
            ),
        ),
    ),
}
