"""Readers of robot and task files.

A name is imported when it is first used: a robot is loaded without what tasks need.
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import lazy_loader as _lazy

__getattr__: _Callable[[str], _Any]
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
