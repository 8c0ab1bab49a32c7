"""concur: from a robot with a free base to a tracker running on its motors.

The public names are those of this module, listed in ``__init__.pyi``; classes of results are in the
subpackages. See ``docs/api.md`` for one line on each. A name is imported when it is first used.

>>> import concur as cc
>>> robot = cc.robots.rover_arm()
>>> model = cc.reduce(robot)
>>> model.shape_names
('left_wheel', 'right_wheel', 'turret', 'upper_arm', 'forearm')
"""

import lazy_loader as _lazy

from concur._version import __version__ as __version__

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
