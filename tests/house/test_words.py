"""The manual in plain words: unclear phrases get fewer, and the glossary names what exists.

    python -m tests.house.test_words

prints the number of each phrase in each part of the repository.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANUAL = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PARTS = ("concur", "hil", "docs", "tests", "examples", "README.md", "CHANGELOG.md")
SUFFIXES = {".py", ".md", ".toml", ".j2", ".c", ".h"}

# Phrase, and how often the manual may contain it. Numbers are lowered, never raised.
PHRASES = {
    r"\b[Nn]obody\b": 0,
    r"\b(is|are|was) none\b(?! of)": 0,
    r"(?<!there )(?<!There )\b(is|are) no (truth value|pose|proof|number|vector|array|column|matrix"
    r"|reference|place|report|encoder)": 0,
    r"\bputs? up with\b|\bstay(s|ed)? away\b": 3,
    r"\b(is|are|was|were|be|been|unless) told\b|\btold (otherwise|by|once|apart|in)\b"
    r"|\btells?\b": 0,
    r"\bgiv(e|es|en|ing) up\b|\bgave up\b|\bgiven out\b": 0,
    r'came="(none|nothing)"|\bgot (none|nothing)\b': 0,
    r"\b(of (its|their) own|by (itself|themselves)|one's own)\b": 1,
    r"\b(anew|once more|for good|besides)\b": 0,
    r"\bgo(es)? on\b|\bwent on\b|\bgoing on\b": 0,
    r"\blook(s|ed)? at\b": 0,
    r"\b(no torque|torques?|bytes?|frames?) (has |may |have )?(leaves?|left)\b": 1,
    r"\b(knows?|says?)\b": 0,
    r"""(^|["#|:;.(] ?)What (is|was|it|they|the|a|an|this|that|becomes|comes|came|has|holds|one"""
    r"""|each|every|no|users?|others?)\b""": 0,
    r"\bprogrammes?\b": 0,
}


def count(phrase: str, text: str) -> int:
    return sum(1 for _ in re.finditer(phrase, text, re.MULTILINE))


def prose(path: Path) -> str:
    """A page whose paragraphs are one line each, so that a line break hides no phrase."""
    return re.sub(r"(?<=\S)\n(?=[^\s|#`>-])", " ", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("phrase", PHRASES)
def test_phrases_of_the_manual_only_get_fewer(phrase):
    found = {path.relative_to(ROOT).as_posix(): count(phrase, prose(path)) for path in MANUAL}
    assert sum(found.values()) <= PHRASES[phrase], {page: n for page, n in found.items() if n}


def test_phrases_are_found_across_line_breaks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("A loop that puts\nup with it.\n\n- Nobody\n  is told.\n")
    assert [count(phrase, prose(page)) for phrase in PHRASES][:5] == [1, 0, 0, 1, 1]


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
        path = ROOT / part
        files = [path] if path.is_file() else [f for f in path.rglob("*") if f.suffix in SUFFIXES]
        texts.append("\n".join(file.read_text(encoding="utf-8") for file in files))
    for phrase in PHRASES:
        counts = [count(phrase, text) for text in texts]
        shown = phrase.replace("|", "\\|")
        print("| " + " | ".join(map(str, [*counts, sum(counts)])) + f" | `{shown}` |")


if __name__ == "__main__":
    main()
