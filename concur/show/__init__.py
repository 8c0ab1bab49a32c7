"""Figures of robots and results, animations, the HTML report of a run, and the viewer.

All functions read a finished result and compute nothing again. The modules are imported on
first use, so that importing the package does not import Matplotlib.
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import lazy_loader as _lazy

__getattr__: _Callable[[str], _Any]
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
