"""Objects with evaluated methods: machine code for them, and separate buffers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MethodType
from typing import Any, ClassVar

from concur.codegen._arguments import Place
from concur.codegen._evaluated import NONE, numeric
from concur.codegen._evaluator import Evaluator
from concur.codegen._library import compiled
from concur.errors import ShapeError, UnknownNameError


class EvaluatedMethods:
    """Base of classes with `evaluated` methods: keeps their evaluators out of pickles."""

    _COMPILED: ClassVar[tuple[str, ...]] = ()
    """Methods that `compile_functions` compiles by default."""

    _bound: ClassVar[bool] = True
    """Whether the object contains numbers only. The methods of one with expressions in place of
    numbers take and return expressions, and keep no graphs, which could not contain them."""

    @property
    def quaternions(self) -> Mapping[Place, str]:
        """Start index of each unit quaternion in a configuration, and the name of its owner."""
        return NONE

    @property
    def _attitudes(self) -> Mapping[str, Mapping[Place, str]]:
        """Start indices of unit quaternions, by name of the argument.

        Numeric calls normalise them inside the graph if they are within 1e-3 of unit norm, and
        reject others. Symbolic calls do not: there quaternions must have unit norm.
        """
        return dict.fromkeys(("q", "q0", "q1"), self.quaternions) if self.quaternions else NONE

    def compile_functions(self, *functions: str | tuple[Any, ...]) -> bool:
        """Compile methods of this object to machine code.

        Results stay the same. Copies made by pickling use machine code too; other objects are
        unaffected.

        Parameters
        ----------
        *functions : str or tuple
            Names of methods that take arrays; for a method that also takes a name, a tuple such as
            ``("jacobian", "tool")``. Default: those in `_COMPILED`, and those already called with
            numbers.

        Returns
        -------
        bool
            Whether the functions are machine code; else they are interpreted, without a compiler.

        Raises
        ------
        UnknownNameError
            If a method does not exist.
        """
        asked = functions or self._COMPILED
        calls = [entry if isinstance(entry, tuple) else (entry,) for entry in asked]
        evaluators = {
            call: self._evaluator(call[0], "compile_functions", *call[1:]) for call in calls
        }
        found = list(dict.fromkeys(evaluators.values()))
        if not functions:
            found = list(dict.fromkeys([*found, *numeric(self).values()]))
        if not found:
            raise UnknownNameError(
                f"{type(self).__name__}.compile_functions",
                expected="names of methods that take arrays",
                came="no names, and no method called before",
                cure="Name the methods.",
            )
        made = compiled([evaluator.function for evaluator in found])
        if made is None:
            return False
        for evaluator, function in zip(found, made.functions, strict=True):
            evaluator.replace(function)
        keys = [key for key, evaluator in numeric(self).items() if evaluator in found]
        before = self.__dict__.get("_compiled", ())
        self.__dict__["_compiled"] = tuple(dict.fromkeys((*before, *keys)))
        self._install({name for name, _ in keys})
        return True

    def buffered(self, name: str, *static: Any) -> Evaluator:
        """Return an evaluator of a method of this object with separate buffers.

        Parameters
        ----------
        name : str
            Name of a method that takes arrays.
        *static : str
            Its arguments that are not arrays, like the body of ``robot.jacobian(q, body)``.

        Returns
        -------
        Evaluator
            Call it like the method. `view` returns its buffers instead of copies; `inputs`,
            `trigger` and `outputs` are for loops that fill the buffers themselves. It is machine
            code if the method is compiled already. Each thread needs another one.

        Raises
        ------
        UnknownNameError
            If the method does not exist.
        ShapeError
            If the number of arguments that are not arrays is wrong.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.free_flyer()
        >>> mass_matrix = robot.buffered("mass_matrix")
        >>> mass_matrix.view(robot.neutral()).shape
        (12, 12)
        """
        return self._evaluator(name, "buffered", *static).copy()

    def _evaluator(self, name: str, asked: str, *static: Any) -> Evaluator:
        method: Any = getattr(type(self), name, None) if isinstance(name, str) else None
        if not hasattr(method, "evaluator_for"):
            known = [n for n in dir(type(self)) if hasattr(getattr(type(self), n), "evaluator_for")]
            raise UnknownNameError(
                f"{type(self).__name__}.{asked}",
                expected=f"methods that take arrays ({', '.join(known)})",
                came=f"`{name}`",
                cure="Correct the name.",
                name=name,
            )
        try:
            evaluator: Evaluator = method.evaluator_for(self, *static)
        except TypeError as error:
            raise ShapeError(
                f"{type(self).__name__}.{asked}, `{name}`",
                expected="the arguments that are not arrays",
                came=f"{static} ({error})",
                cure='Write for example ("jacobian", "tool").',
            ) from None
        return evaluator

    def _install(self, names: set[str]) -> None:
        """Install direct calls of compiled methods."""
        for qualified in names:
            name = qualified.rpartition(".")[2]
            method: Any = getattr(type(self), name, None)
            # A subclass's override calls an overridden method: it keeps the general call.
            if getattr(method, "__qualname__", None) == qualified:
                function = method.direct_for(self)
                if function is not None:
                    self.__dict__[name] = MethodType(function, self)

    def _compile_again(self) -> None:
        """Compile the previously compiled methods, at the first call after unpickling."""
        self.__dict__["_evaluators"] = {}
        known = self.__dict__["_compiled"]
        self.compile_functions(*[(name.rpartition(".")[2], *static) for name, static in known])

    def __getstate__(self) -> dict[str, Any]:
        return {
            k: v
            for k, v in self.__dict__.items()
            if k != "_evaluators" and not (isinstance(v, MethodType) and v.__self__ is self)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
