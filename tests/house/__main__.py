"""Lines of code of each folder: `python -m tests.house` writes them into docs/architecture.md."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
OTHER = {".c", ".h", ".j2", ".js", ".css", ".html"}
"""Endings of hand-written files that are not Python: all lines that are not blank count."""
TABLE = re.compile(r"(?<=<!-- lines -->\n).*?(?=<!-- end of lines -->)", re.DOTALL)
SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def lines_of_code(text: str) -> int:
    """Lines of a Python text that are neither blank nor comments nor docstrings."""
    documented = set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                documented |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    code = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - documented)


def counts() -> Iterator[tuple[str, int, int]]:
    """Folder, lines of code and files: of each package of `concur`, of `hil` and of the tests."""
    folders = [p for p in sorted((ROOT / "concur").iterdir()) if (p / "__init__.py").exists()]
    groups = {f"concur/{folder.name}": list(folder.rglob("*")) for folder in folders}
    groups["concur, single files"] = list((ROOT / "concur").glob("*.py"))
    groups |= {name: list((ROOT / name).rglob("*")) for name in ("hil", "tests")}
    for name, paths in groups.items():
        code = files = 0
        for path in paths:
            if path.suffix == ".py":
                code += lines_of_code(path.read_text(encoding="utf-8"))
            elif path.suffix in OTHER and "data" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="replace")
                code += sum(bool(line.strip()) for line in text.splitlines())
            else:
                continue
            files += 1
        yield name, code, files


def table() -> str:
    """Rows of all folders, with their sum."""
    rows = list(counts())
    rows.append(("together", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    lines = [f"| `{name}` | {code} | {files} |" for name, code, files in rows]
    return "\n".join(["| folder | lines of code | files |", "| --- | --- | --- |", *lines, ""])


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: table(), text), encoding="utf-8")
    print(table())
