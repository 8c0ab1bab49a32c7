"""Writing of statements and proofs as JSON."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from concur.certify._recheck_document import as_path
from concur.errors import DescriptionError


def write_document(path: str | PathLike[str], document: dict[str, Any]) -> None:
    """Write an object as JSON, a member to a line.

    Parameters
    ----------
    path : str or os.PathLike
        File to write; an existing one is replaced.
    document : dict
        What JSON knows; no NaN or infinity.

    Raises
    ------
    DescriptionError
        If the file cannot be written, or the path is none.
    """
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in document.items()]
    target = as_path(path)
    try:
        target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DescriptionError(
            str(path),
            expected="a file that can be written",
            came=getattr(error, "strerror", None) or str(error),
            cure="Create the folder, or name another file.",
        ) from None
