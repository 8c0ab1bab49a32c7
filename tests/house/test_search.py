"""The check of the site's search, which `sphinx-build` calls at its end."""

import json
import sys

import pytest

from tests.house.test_docs import ROOT

sys.path.insert(0, str(ROOT / "docs"))
import search

PAGES = ["start", *dict.fromkeys(search.SOUGHT.values())]
TERMS = {
    "margin": [0, 1],
    "singular": [1],
    "momentum": PAGES.index("howto/momentum"),
    "watchdog": [0, PAGES.index("rig_files")],
}


def written(folder, terms, titles=None):
    index = {"docnames": PAGES, "terms": terms, "titleterms": titles or {}}
    (folder / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})")
    return search.fault(folder)


def test_words_that_lead_to_their_pages_pass(tmp_path):
    assert written(tmp_path, TERMS) is None
    assert written(tmp_path, {}, TERMS) is None
    assert all((ROOT / "docs" / f"{page}.md").is_file() for page in PAGES)


@pytest.mark.parametrize("word", search.SOUGHT)
def test_a_word_without_its_page_fails_the_build(word, tmp_path):
    page = search.SOUGHT[word]
    sentence = f"the search for {word} does not find {page}"
    assert written(tmp_path, {k: v for k, v in TERMS.items() if k != word}) == sentence
    assert written(tmp_path, TERMS | {word: [0]}) == sentence


def test_the_words_are_those_that_readers_seek():
    assert set(search.SOUGHT) == {"margin", "singular", "momentum", "watchdog"}
