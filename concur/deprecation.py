"""Old names that keep working, each with a `DeprecationWarning` that names the new one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def warn(old: str, new: str, level: int = 2) -> None:
    """Warn that a name is old.

    Parameters
    ----------
    old, new : str
        The old name and the new one.
    level : int
        Frame of the user: 1 is the caller of this function, 2 its caller.
    """
    message = f"`{old}` is deprecated: use `{new}`"
    warnings.warn(message, DeprecationWarning, stacklevel=level + 1)


def moved_names(module: str, names: Mapping[str, str | tuple[str, str]]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module whose names are elsewhere now.

    Parameters
    ----------
    module : str
        Name of the module.
    names : mapping
        By old name the dotted path of the object; or this path and what to use instead.

    Returns
    -------
    callable
        Finds an old name, with a warning.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = names[name]
        path, instead = found if isinstance(found, tuple) else (found, found)
        warn(f"{module}.{name}", instead)
        owner, _, own = path.rpartition(".")
        return getattr(import_module(owner), own)

    return find


def renamed_arguments(names: Mapping[str, str], both: bool = False) -> Callable[[F], F]:
    """Let a function accept arguments by their old names.

    Parameters
    ----------
    names : mapping of str to str
        The new name of each old one.
    both : bool
        Whether the old name of an argument may be given beside the new one, and counts then, as
        `dataclasses.replace` needs it. Otherwise this is a TypeError.

    Returns
    -------
    callable
        Decorator of the function.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            for old in names.keys() & options.keys():
                if names[old] in options and not both:
                    raise TypeError(
                        f"{function.__name__}() got `{names[old]}` and its old name `{old}`"
                    )
                warn(old, names[old])
                options[names[old]] = options.pop(old)
            return function(*args, **options)

        return call  # type: ignore[return-value]

    return decorate


def renamed_attributes(names: Mapping[str, str]) -> Callable[[T], T]:
    """Let the objects of a class have fields, properties and methods by their old names.

    Parameters
    ----------
    names : mapping of str to str
        The new name of each old one.

    Returns
    -------
    callable
        Decorator of the class.
    """

    def decorate(cls: T) -> T:
        for old, new in names.items():
            setattr(cls, old, _old_attribute(old, new))
        return cls

    return decorate


def renamed_fields(names: Mapping[str, str]) -> Callable[[T], T]:
    """Let a dataclass have fields by their old names, as arguments and as attributes.

    Parameters
    ----------
    names : mapping of str to str
        The new name of each old one.

    Returns
    -------
    callable
        Decorator of the dataclass.
    """

    def decorate(cls: T) -> T:
        cls.__init__ = renamed_arguments(names, both=True)(cls.__init__)  # type: ignore[misc]
        return renamed_attributes(names)(cls)

    return decorate


class renamed_member:  # noqa: N801
    """Old name of a member in the body of an enumeration; its number stays.

    Parameters
    ----------
    new : str
        Name of the member.
    """

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = name

    def __get__(self, instance: object, owner: type[Enum]) -> Any:
        warn(f"{owner.__name__}.{self.old}", f"{owner.__name__}.{self.new}")
        return owner[self.new]


def renamed_entries(table: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Rename the fields of a TOML table that have old names.

    Parameters
    ----------
    table : mapping
        The table.
    names : mapping of str to str
        The new name of each old one.

    Returns
    -------
    mapping
        The table with new names. An old name beside its new one stays: it is an unknown field.
    """
    old = [name for name in names if name in table and names[name] not in table]
    for name in old:
        message = f"field `{name}` is deprecated: write `{names[name]}`"
        warnings.warn(message, DeprecationWarning, stacklevel=3)
    return {names[name] if name in old else name: value for name, value in table.items()}


def _old_attribute(old: str, new: str) -> property:
    def value(self: object) -> Any:
        warn(old, new)
        return getattr(self, new)

    return property(value, doc=f"Deprecated name of `{new}`.")
