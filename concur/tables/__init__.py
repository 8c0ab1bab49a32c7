"""Tables of files: TOML to objects whose constructors are the schema.

`build` makes an object from a table: the fields are the parameters of its constructor, their types
and bounds the annotations, their meaning the docstring. The checks are those of the constructor; an
error has file, table and field before its place. The package imports none of these classes.

A name is imported when it is first used: annotations do not load the validator.
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import lazy_loader as _lazy

__getattr__: _Callable[[str], _Any]
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
