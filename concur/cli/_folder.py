"""Folders of results: the files of one belong to the last run that was started there."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concur._version import __version__
from concur.cli._answer import Answer, Reply
from concur.errors import ConcurError, DescriptionError
from concur.files import lock, writing
from concur.results import Figures, word

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANIFEST = "concur.json"
"""Manifest: lists the files of each command's last run in a folder, and its outcome."""

OWN = {
    "track": ("run.h5", "report.html", "animation.gif", "animation.mp4"),
    "certify": ("proof.json", "operating.json", "certificate.html"),
    "prove": ("bounds.json", "bounds.png", "report.html"),
    "export": (),
    "plan": ("report.html",),
    "verify": ("report.html", "report.json", "campaign.h5"),
    "compare": ("report.html", "report.json"),
}
"""Files with a verdict, per command: `--overwrite` removes them even if no run lists them."""

_STAGING = ".concur-"


class Results:
    """Results of one run of a command; made by `results`.

    Files are written to `staging`, a hidden folder; `publish` moves them to the folder. So a file
    is complete or missing, and a symbolic link is replaced, not followed.
    """

    def __init__(self, folder: Path, command: str, made: tuple[Path, ...], overwrite: bool) -> None:
        self.folder, self.command, self._made, self._overwrite = folder, command, made, overwrite
        self.files: list[Path] = []
        self._entry = {"status": "running", "why": "", "started": _now(), "ended": ""}
        with _writable(folder):
            self.write_manifest()
            self.staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=folder))

    @property
    def manifest(self) -> Path:
        """Path of the manifest."""
        return self.folder / MANIFEST

    def publish(self, staged: Iterable[Path]) -> list[Path]:
        """Move staged files to the folder and list them in the manifest."""
        moved = []
        with _writable(self.folder):
            for path in staged:
                target = self.folder / path.name
                # Files of earlier runs of this command were removed at the start.
                if target not in self.files and not self._overwrite and os.path.lexists(target):
                    raise foreign(self.folder, [path.name])
                os.replace(path, target)
                moved.append(target)
                self.files += [target] * (target not in self.files)
            self.write_manifest()
        return moved

    def file(self, name: str, write: Callable[[Path], object]) -> Path:
        """Write a file of this name by a function of its path, and publish it."""
        staged = self.staging / name
        with writing(self.folder):
            write(staged)
        return self.publish([staged])[0]

    def draw(self, reply: Reply, figures: Figures) -> dict[str, Path]:
        """Draw figures as PNG files with their names, and publish them."""
        from concur.show.style import save_picture

        drawn = {}
        with reply.progress("drawing") as report:
            for k, (name, figure) in enumerate(figures.items()):
                drawn[name] = self.file(f"{name}.png", partial(save_picture, figure()))
                report(k + 1, len(figures))
        return drawn

    def document(self, reply: Reply, found: Answer, name: str) -> Path:
        """Write an answer as a JSON file of this name, and publish it."""
        text = json.dumps(reply.document(found), indent=2, allow_nan=False) + "\n"
        return self.file(name, lambda path: path.write_text(text, encoding="utf-8"))

    def close_with(self, found: Answer, why: str = "") -> Answer:
        """Record the outcome of the run; return its answer with the files of the run."""
        self.end(word(found.status), why or ("" if found.passed else "; ".join(found.problems)))
        return replace(found, files=(*self.files, self.manifest))

    def end(self, status: str, why: str = "") -> None:
        """Record the outcome of the run, and the reason if the answer is no."""
        self._entry |= {"status": status, "why": why, "ended": _now()}

    def interrupted(self, error: BaseException) -> None:
        """Record the error that ended the run, unless its outcome is already recorded."""
        if self._entry["status"] != "running":
            return
        interrupted = isinstance(error, KeyboardInterrupt)
        status = "refused" if isinstance(error, ConcurError) else "failed"
        status = "partial" if self.files else "interrupted" if interrupted else status
        self.end(status, "interrupted" if interrupted else str(error) or type(error).__name__)

    def close(self) -> None:
        """Remove staged files, and the folder if it is new and contains only the manifest."""
        shutil.rmtree(self.staging, ignore_errors=True)
        with suppress(OSError):
            if self._made and not self.files:
                self.manifest.unlink()
                for folder in self._made:
                    folder.rmdir()
            else:
                self.write_manifest()

    def write_manifest(self) -> None:
        """Replace this command's entry of the manifest."""
        entries = _read(self.folder) or {}
        entries[self.command] = {**self._entry, "files": sorted(path.name for path in self.files)}
        text = json.dumps({"concur": __version__, **entries}, indent=2)
        number, name = tempfile.mkstemp(prefix=_STAGING, dir=self.folder)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            os.replace(name, self.manifest)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def results(
    folder: Path, command: str, overwrite: bool = False, keep: Sequence[str] = ()
) -> Iterator[Results]:
    """Use a folder for one run of a command; results of its earlier run are removed first.

    `keep` names those from which the new run continues.

    The folder is locked before anything in it changes, until the end of the run.

    Other files do not matter unless the command writes files of the same names, which needs
    `overwrite`. Hidden files and folders never matter.
    """
    where = f"option `--out`, {folder}"
    with ExitStack() as held:
        with _writable(folder):
            if folder.is_symlink():
                raise DescriptionError(
                    where,
                    expected="a folder",
                    came=f"a symbolic link to {os.readlink(folder)}",
                    cure="Name the folder itself.",
                )
            made = tuple(this for this in (folder, *folder.parents) if not this.exists())
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(_locked(folder))
            entries = _read(folder) or {}
            _check_folders(folder, command)
            if not overwrite:
                _check_files(folder, command, entries)
            earlier = entries.get(command, {}).get("files", ())
            for name in {*earlier, *(OWN[command] if overwrite else ())}.difference(keep):
                if (folder / name).is_symlink() or (folder / name).is_file():
                    (folder / name).unlink()
            for stale in folder.glob(f"{_STAGING}*"):
                if stale.is_dir() and not stale.is_symlink():
                    shutil.rmtree(stale, ignore_errors=True)
        kept = Results(folder, command, made, overwrite)
        try:
            yield kept
        except BaseException as error:
            kept.interrupted(error)
            raise
        finally:
            kept.close()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder, where its file system has locks; folders of Windows cannot be opened."""
    if os.name == "nt":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            lock(handle)
        except BlockingIOError:
            raise ConcurError(
                f"option `--out`, {folder}",
                expected="a folder that no other command writes",
                came="one that another process has locked",
                cure="Wait for the other command, or name another folder.",
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(handle)


def _check_folders(folder: Path, command: str) -> None:
    """Reject subfolders with names of results, as no file can replace them after the run."""
    for path in (folder / name for name in (MANIFEST, *OWN[command])):
        if path.is_dir() and not path.is_symlink():
            raise DescriptionError(
                f"option `--out`, {folder}",
                expected=f"no folder with the name of a result: {path.name}",
                came="a folder of this name",
                cure="Choose another folder for the results, or move that one away.",
            )


def _check_files(folder: Path, command: str, entries: dict[str, Any]) -> None:
    """Reject files with names of results that no earlier run of the command wrote.

    Without a manifest, reject any file.
    """
    ours = {MANIFEST, *entries.get(command, {}).get("files", ())}
    others = sorted(
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(".") and (path.is_symlink() or not path.is_dir())
    )
    if entries:
        others = [name for name in others if name not in ours and name in OWN[command]]
    if others:
        raise foreign(folder, others)


def foreign(folder: Path, names: list[str]) -> ConcurError:
    """Error about files that are no results of an earlier run."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return DescriptionError(
        f"option `--out`, {folder}",
        expected="an empty folder, or one with results of an earlier run",
        came=f"other files: {', '.join(names[:3])}{more}",
        cure="Name another folder, or pass --overwrite to replace files of the same names.",
    )


def _read(folder: Path) -> dict[str, Any] | None:
    """Entries of a folder's manifest by command; None without a valid manifest."""
    path = folder / MANIFEST
    if path.is_symlink() or not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stored, dict) or "concur" not in stored:
        return None
    entries = {name: stored[name] for name in OWN if name in stored}
    sound = all(
        isinstance(entry, dict)
        and isinstance(entry.get("files"), list)
        and all(isinstance(name, str) and _plain(name) for name in entry["files"])
        for entry in entries.values()
    )
    return entries if sound and entries else None


def _plain(name: str) -> bool:
    """Whether a name is that of a file directly in the folder."""
    return name not in ("", ".", "..") and not set(name) & {"/", "\\", "\0"}


def _writable(folder: Path) -> AbstractContextManager[None]:
    return writing(folder, f"option `--out`, {folder}", DescriptionError, "folder")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def save_figure(figure: Figure, target: Path, option: str) -> None:
    """Save a figure as the file that an option names."""
    with writing(target, f"option `{option}`, {target}"):
        figure.savefig(target)
