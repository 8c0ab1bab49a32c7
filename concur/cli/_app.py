"""The application: its commands, the options that they share, and how they end."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
import typer.core

from concur._threads import LIMITS
from concur._version import __version__
from concur.cli._answer import Reply
from concur.tables import meanings

STATUS = "0 yes, 1 no, 2 bad input."
"""Exit statuses of a command that answers a question."""

WRITTEN = "0 written, 2 bad input."
"""Exit statuses of one that does not."""

CONTENTS: dict[str, dict[str, str]] = {}
"""Commands and what they do, under the headings of `concur --help`; `command` fills it."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for machines.")]
TaskFile = Annotated[Path, typer.Argument(help="Task file (.toml).")]
Out = Annotated[
    Path | None, typer.Option(help="Folder of the results; default out/<name of the file>.")
]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Write into a folder that holds other files than results; files with the names of "
        "results are replaced.",
    ),
]
ListAudit = Annotated[
    bool,
    typer.Option("--audit", help="List all assumptions of the theory, not only those that fail."),
]


class _Contents(typer.core.TyperGroup):
    """Lists the commands like a table of contents."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, lines in CONTENTS.items():
            with formatter.section(heading):
                formatter.write_dl(list(lines.items()))


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"concur {__version__}")
        raise typer.Exit


def application(
    text: str,
    variables: Mapping[str, str] | None = None,
    contents: type[typer.core.TyperGroup] = typer.core.TyperGroup,
    markup: Literal["rich"] | None = None,
) -> typer.Typer:
    """Make the application of a program, with the option `--version`.

    Parameters
    ----------
    text : str
        What the program does.
    variables : mapping of str to str, optional
        Variables of the environment that are set where they are missing.
    contents : type
        Class that lists the commands.
    markup : str, optional
        Whether texts have the markup of rich: "rich".

    Returns
    -------
    typer.Typer
        The application, without commands.
    """
    made = typer.Typer(
        cls=contents,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=markup,
        help=text,
    )

    @made.callback()
    def root(
        version: Annotated[
            bool,
            typer.Option(
                "--version", callback=_show_version, is_eager=True, help="Show the version."
            ),
        ] = False,
    ) -> None:
        """Group of the commands."""
        os.environ.update({**(variables or {}), **os.environ})

    return made


main = application(
    "Build tracking controllers for robots with a free base.",
    dict.fromkeys(LIMITS, "1"),
    _Contents,
)


def command(
    heading: str, about: str, example: str, status: str = STATUS
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a command of a function: its parameters are the options, its name is the command's.

    The section `Parameters` of its docstring has their help. A parameter without a default is an
    argument, one that is False an option without a value; `Annotated` with `typer.Option` has what
    else an option needs. The function gets a `Reply` first. If it returns an `Answer`, the command
    has the option `--json` and ends with the exit status of the answer.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name = function.__name__
        CONTENTS.setdefault(heading, {})[name] = about
        signature = inspect.signature(function, eval_str=True)
        options = list(signature.parameters.values())[1:]
        if signature.return_annotation is not None:
            kind = inspect.Parameter.KEYWORD_ONLY
            options.append(inspect.Parameter("as_json", kind, default=False, annotation=AsJson))

        def run(as_json: bool = False, **given: Any) -> None:
            reply = Reply(name, as_json)
            with reply.errors():
                reply.end(function(reply, **given))

        run.__doc__ = function.__doc__
        run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
        epilog = f"Example: {example}\n\nExit status: {status}"
        main.command(name, epilog=epilog)(documented(run))
        return function

    return register


def documented(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let Typer take the help of the options of a function from its docstring.

    Parameters
    ----------
    function : callable
        Function whose parameters are arguments and options.

    Returns
    -------
    callable
        The same function.
    """
    signature, texts = inspect.signature(function, eval_str=True), meanings(function)
    options = [_described(option, texts) for option in signature.parameters.values()]
    text = inspect.getdoc(function) or ""
    function.__doc__ = text.partition("\n\nParameters\n---")[0]
    # Typer reads both.
    function.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    function.__annotations__ = {option.name: option.annotation for option in options}
    return function


def _described(option: inspect.Parameter, texts: Mapping[str, str]) -> inspect.Parameter:
    """An argument or an option with the help of its docstring, unless it has its own."""
    kind, *given = get_args(option.annotation) if _is_annotated(option) else (option.annotation,)
    if given:
        info = given[0]
    elif option.default is option.empty:
        info = typer.Argument()
    else:
        flag = f"--{option.name.replace('_', '-')}"
        info = typer.Option(*[flag] * (option.default is False))
    info.help = info.help or texts.get(option.name)
    return option.replace(annotation=Annotated[kind, info])


def _is_annotated(option: inspect.Parameter) -> bool:
    return get_origin(option.annotation) is Annotated
