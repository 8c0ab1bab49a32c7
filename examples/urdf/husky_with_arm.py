"""Carry an arm on a Husky rover: one URDF file from two.

    python husky_with_arm.py HUSKY.urdf ARM.urdf OUT.urdf

The root link of ARM is fixed to the top plate. Links and joints of ARM get the prefix `arm_`.
"""

import re
import sys
from pathlib import Path
from xml.etree import ElementTree

# ROS replaces `$(optenv NAME default)` by the default if the variable is not set.
rover, arm = (
    ElementTree.fromstring(re.sub(r"\$\(optenv \S+ ([^)]*)\)", r"\1", Path(file).read_text()))
    for file in sys.argv[1:3]
)
# The moments of the wheels are those of cylinders about z; the axles are y.
for link in rover.iterfind("link"):
    if link.find("collision/geometry/cylinder") is not None:
        link.find("inertial/origin").set("rpy", "1.5707963267948966 0 0")
carried = {child.get("link") for child in arm.iterfind("joint/child")}
(root,) = {link.get("name") for link in arm.iterfind("link")} - carried
names = {"link": "name", "joint": "name", "mimic": "joint", "parent": "link", "child": "link"}
for part in [*arm.iterfind("link"), *arm.iterfind("joint")]:
    for element in part.iter():
        if element.tag in names:
            key = names[element.tag]
            element.set(key, f"arm_{element.get(key)}")
    rover.append(part)
mount = ElementTree.SubElement(rover, "joint", name="arm_mount", type="fixed")
ElementTree.SubElement(mount, "origin", xyz="0.08 0 0.245")
ElementTree.SubElement(mount, "parent", link="top_plate_link")
ElementTree.SubElement(mount, "child", link=f"arm_{root}")
ElementTree.ElementTree(rover).write(sys.argv[3], encoding="unicode")
