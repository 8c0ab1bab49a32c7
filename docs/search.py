"""The index of the site's search: words that lead to their pages."""

from __future__ import annotations

import json
from pathlib import Path

SOUGHT = {
    "margin": "howto/singular",
    "singular": "howto/singular",
    "momentum": "howto/momentum",
    "watchdog": "rig_files",
}
"""Words that a reader seeks first, and a page that has to be among those found."""


def fault(folder: Path) -> str | None:
    """The first word with which the search of a built site does not find its page."""
    text = (folder / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    for word, page in SOUGHT.items():
        found = [index[kind].get(word, []) for kind in ("terms", "titleterms")]
        numbers = [k for each in found for k in (each if isinstance(each, list) else [each])]
        if page not in (index["docnames"][k] for k in numbers):
            return f"the search for {word} does not find {page}"
    return None
