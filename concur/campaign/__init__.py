"""Campaigns: a controller against many worlds, and answers from the samples.

A world is a row of deviations from nominal numbers. An evaluator gives the robustness of each
requirement in a world: positive if it holds, and larger for a larger margin. The answers are
sampled; proofs come from `concur.certify`.

A name is imported when it is first used: workers of a campaign start with few modules.
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import lazy_loader as _lazy

__getattr__: _Callable[[str], _Any]
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
