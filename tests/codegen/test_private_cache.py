"""Compiled code is loaded only if only its owner can have written it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import casadi as ca
import pytest

from concur.codegen import CompilerWarning, _cache, _compiler, compiled, recalled
from concur.codegen._cache import _note

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs accounts of POSIX")


def doubled() -> ca.Function:
    x = ca.SX.sym("x")
    return ca.Function("doubled", [x], [2 * x])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CONCUR_CACHE", str(folder))
    return folder


@pytest.mark.usefixtures("compiler")
def test_a_library_that_others_can_write_is_compiled_anew(cache: Path) -> None:
    made = compiled([doubled()], key="k")
    assert made is not None
    assert not made.cached
    again = recalled("k")
    assert again is not None
    assert float(again.functions[0](3.0)) == 6.0
    (library,) = cache.glob("*.so")
    assert library.stat().st_mode & 0o022 == 0
    for mode, kept in ((0o700, True), (0o755, True), (0o720, False), (0o702, False)):
        library.chmod(mode)
        assert _cache.is_whole(library) is kept
        assert (recalled("k") is not None) is kept
    fresh = compiled([doubled()])
    assert fresh is not None
    assert not fresh.cached
    assert library.stat().st_mode & 0o022 == 0


@pytest.mark.usefixtures("compiler")
def test_a_link_or_a_path_to_somewhere_else_is_not_loaded(cache: Path, tmp_path: Path) -> None:
    assert compiled([doubled()], key="k") is not None
    (library,) = cache.glob("*.so")
    for part in (library, library.with_suffix(".sha256")):
        part.rename(tmp_path / part.name)
    compiler = _compiler.find_compiler()
    assert compiler is not None
    note = _note("k", compiler)
    facts = json.loads(note.read_text())
    for name in (str(tmp_path / library.name), f"../{library.name}"):
        note.write_text(json.dumps(facts | {"library": name}))
        assert recalled("k") is None
    note.write_text(json.dumps(facts))
    for part in (library, library.with_suffix(".sha256")):
        part.symlink_to(tmp_path / part.name)
    assert recalled("k") is None


def test_a_folder_of_ours_is_closed_to_others(cache: Path) -> None:
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    assert _cache.cache_directory() == cache
    assert cache.stat().st_mode & 0o022 == 0


def test_a_folder_of_another_account_is_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    other = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.warns(CompilerWarning, match="belongs to another account"):
        found = _cache.cache_directory()
    assert found != cache
