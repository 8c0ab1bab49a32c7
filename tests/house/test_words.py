"""Plain words in manual and code: unclear phrases get fewer; names in the glossary exist.

    python -m tests.house.test_words

prints the number of each phrase in each part of the repository.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("concur", "hil", "docs", "tests", "examples", "README.md", "CHANGELOG.md")
SUFFIXES = {".py", ".md", ".toml", ".j2", ".c", ".h"}

PHRASES = {
    "nobody": r"\b[Nn]obody\b",
    "is none": r"\b(is|are|was) none\b(?! of)",
    "is no number": r"(?<!there )(?<!There )\b(is|are) no (truth value|pose|proof|number|vector"
    r"|array|column|matrix|reference|place|report|encoder)",
    "puts up with": r"\bputs? up with\b|\bstay(s|ed)? away\b",
    "is told": r"\b(is|are|was|were|be|been|unless) told\b|\btold (otherwise|by|once|apart|in)\b"
    r"|(?<!\.)\btells?\b",  # not a method of another package
    "gives up": r"\bgiv(e|es|en|ing) up\b|\bgave up\b|\bgiven out\b",
    "got nothing": r'came="(none|nothing)"|\bgot (none|nothing)\b',
    "of its own": r"\b(of (its|their) own|by (itself|themselves)|one's own)\b",
    "anew": r"\b(anew|once more|for good|besides)\b",
    "goes on": r"\bgo(es)? on\b|\bwent on\b|\bgoing on\b",
    "looks at": r"\blook(s|ed)? at\b",
    "torque leaves": r"\b(no torque|torques?|bytes?|frames?) (has |may |have )?(leaves?|left)\b",
    "knows, says": r"\b(knows?|says?)\b",
    "What is": r"""(^|["#|:;.(] ?)What (is|was|it|they|the|a|an|this|that|becomes|comes|came|has"""
    r"""|holds|one|each|every|no|users?|others?)\b""",
    "programme": r"\bprogrammes?\b",
}

# How often a part may contain a phrase; 0 if not listed. Numbers are lowered, never raised.
CEILINGS = {
    "manual": {"puts up with": 3, "of its own": 1, "torque leaves": 1},
    "hil": {"is none": 13, "is told": 2},
    "concur": {},
}


def files_of(part: str) -> list[Path]:
    """Files of a part: Markdown for the manual, else all files of a folder, or one file."""
    if part == "manual":
        return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    path = ROOT / part
    return [path] if path.is_file() else [f for f in path.rglob("*") if f.suffix in SUFFIXES]


def count(phrase: str, text: str) -> int:
    return sum(1 for _ in re.finditer(phrase, text, re.MULTILINE))


def prose(path: Path) -> str:
    """A text whose paragraphs are one line each, so that a line break hides no phrase."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.sub(r"(?<=\S)\n(?=[^\s|#`>-])", " ", text)
    return re.sub(r"(?<=[\w,;])\n *(# )?(?=\w)", " ", text)


@pytest.mark.parametrize("part", CEILINGS)
def test_phrases_only_get_fewer(part):
    texts = {path.relative_to(ROOT).as_posix(): prose(path) for path in files_of(part)}
    assert texts
    for phrase, pattern in PHRASES.items():
        found = {file: n for file, text in texts.items() if (n := count(pattern, text))}
        assert sum(found.values()) <= CEILINGS[part].get(phrase, 0), (phrase, found)


def test_ceilings_are_of_known_phrases():
    assert all(set(ceilings) <= set(PHRASES) for ceilings in CEILINGS.values())


def test_phrases_are_found_across_line_breaks(tmp_path):
    page, code = tmp_path / "page.md", tmp_path / "code.py"
    page.write_text("A loop that puts\nup with it.\n\n- Nobody\n  is told.\n")
    code.write_text('"""A loop that puts\n    up with it."""\n# Nobody\n# is told.\n')
    for path in (page, code):
        found = [count(phrase, prose(path)) for phrase in PHRASES.values()]
        assert found[:5] == [1, 0, 0, 1, 1]


def test_names_in_the_glossary_exist():
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \|(.*)\|$", page, re.MULTILINE)
    names = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    files = [path for folder in ("concur", "hil") for path in (ROOT / folder).rglob("*.py")]
    words = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in files)))
    missing = [name for name in names if not set(name.split(".")) <= words]
    assert len(names) > 50
    assert not missing, f"in docs/glossary.md, but not in the code: {sorted(missing)}"


def test_terms_of_the_glossary_are_defined_once():
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    terms = [term for row in rows if row not in ("term", "---") for term in row.split(", ")]
    assert len(terms) == len(set(terms)) > 80


def main() -> None:
    print("| " + " | ".join([*PARTS, "total", "phrase"]) + " |")
    print("| " + "---: | " * (len(PARTS) + 1) + "--- |")
    texts = []
    for part in PARTS:
        texts.append("\n".join(file.read_text(encoding="utf-8") for file in files_of(part)))
    for phrase in PHRASES.values():
        counts = [count(phrase, text) for text in texts]
        shown = phrase.replace("|", "\\|")
        print("| " + " | ".join(map(str, [*counts, sum(counts)])) + f" | `{shown}` |")


if __name__ == "__main__":
    main()
