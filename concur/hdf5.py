"""Reader of HDF5 files that others may have written: what `save` writes, and nothing else.

A file is read into memory once. Datasets are hard links of its root, numbers or one text; chunks
are taken from these bytes and inflated here, each to the size that it declares. So no declared
number reserves memory that the file does not fill, and no other file is opened: external storage,
virtual datasets, links that are resolved by name, references and further filters are rejected.
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from concur.errors import ConcurError, DescriptionError, shown
from concur.files import read_bytes

LARGEST_HDF5 = 2**32
"""Bytes of a file, and of all numbers read from it, above which it is rejected."""

LARGEST_CHUNK = 2**26
"""Bytes of a chunk above which a file is rejected; the library writes chunks of 1 MiB."""

LARGEST_TEXT = 2**26
"""Bytes of all texts of a file above which it is rejected."""

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_HEAP = b"GCOL\x01"
_HEAP_HEAD = 16
_DEFLATE = 1
_MOST_NAMES = 10_000


class Hdf5File:
    """An open file; made by `hdf5_file`.

    Parameters
    ----------
    path : Path
        The file.
    data : bytes
        Its content.
    file : h5py.File
        The library's view of the same bytes.
    expected, cure : str
        As of `hdf5_file`.
    """

    def __init__(self, path: Path, data: bytes, file: Any, expected: str, cure: str) -> None:
        self.path, self._data, self._file = path, data, file
        self._expected, self._cure = expected, cure
        self._room, self._text_room = LARGEST_HDF5, LARGEST_TEXT

    def refuse(
        self, came: str, name: str = "", expected: str | None = None, cure: str | None = None
    ) -> NoReturn:
        """Raise the error for the file, or one dataset of it.

        Parameters
        ----------
        came : str
            The received value.
        name : str
            The dataset; empty for the file.
        expected, cure : str, optional
            As of `ConcurError`. Default: those of the file.

        Raises
        ------
        DescriptionError
            Always.
        """
        raise DescriptionError(
            f"{self.path}, dataset `{shown(name)}`" if name else str(self.path),
            expected=expected or self._expected,
            came=came,
            cure=cure or self._cure,
            file=str(self.path),
            **({"dataset": name} if name else {}),
        )

    def array(self, name: str, kinds: str = "fiu") -> np.ndarray:
        """Numbers of a dataset.

        Parameters
        ----------
        name : str
            Name of the dataset.
        kinds : str
            NumPy's kinds of the numbers that are accepted.

        Returns
        -------
        numpy.ndarray
            The numbers, in their own type.
        """
        with self._library(name):
            found = self._dataset(name)
            kind = found.get_type().dtype
            if kind.kind not in kinds or kind.itemsize > 8 or kind.hasobject:
                self.refuse(f"values of type {shown(str(kind))}", name, "real numbers")
            shape = tuple(found.shape)
            size = math.prod(shape) * kind.itemsize
            if size > self._room:
                self.refuse(f"shape {shape}, {size:.3g} bytes", name, _AT_MOST)
            self._room -= size
            if not size:
                return np.empty(shape, kind)
            return self._numbers(found, name, shape, kind)

    def text(self, name: str) -> str:
        """Text of a dataset with one entry.

        Parameters
        ----------
        name : str
            Name of the dataset.

        Returns
        -------
        str
            The text.
        """
        with self._library(name):
            found = self._dataset(name)
            self._check_text(found, name)
            value = self._file[name][()]
            return self._counted(value, name)

    def attributes(self, name: str = "") -> dict[str, Any]:
        """Attributes of a dataset, or of the file: numbers, texts, and lists of them.

        Parameters
        ----------
        name : str
            Name of the dataset; empty for the file.

        Returns
        -------
        dict of str to any
            Values by name.
        """
        from h5py import h5a

        with self._library(name):
            owner = self._dataset(name) if name else self._file.id
            if h5a.get_num_attrs(owner) > _MOST_NAMES:
                self.refuse(f"{h5a.get_num_attrs(owner)} attributes", name)
            found = {}
            for index in range(h5a.get_num_attrs(owner)):
                own = h5a.open(owner, index=index)
                label = own.name.decode()
                self._check_text(own, name, numbers="bfiu")
                value = (self._file[name] if name else self._file).attrs[label]
                if isinstance(value, (str, bytes)):
                    value = self._counted(value, name)
                elif getattr(value, "dtype", np.dtype(float)).kind in "OSU":
                    texts = [self._counted(entry, name) for entry in np.ravel(value)]
                    value = np.array(texts, dtype=object).reshape(np.shape(value))
                found[label] = value
            return found

    def columns(self, name: str) -> list[tuple[str, str]]:
        """Name and unit of each column of a dataset.

        Parameters
        ----------
        name : str
            Name of the dataset.

        Returns
        -------
        list of tuple of str
            One pair for each column.
        """
        facts = self.attributes(name)
        try:
            if "columns" not in facts:
                return [(name, str(facts["unit"]))]
            pairs = zip(facts["columns"], facts["units"], strict=True)
            return [(str(column), str(unit)) for column, unit in pairs]
        except (KeyError, TypeError, ValueError):
            self.refuse("none", name, "names and units of its columns")

    def table(self, widths: Mapping[str, int | None]) -> dict[str, np.ndarray]:
        """Datasets with one row for each entry of the dataset `t`, the increasing times.

        Parameters
        ----------
        widths : mapping of str to int or None
            Number of columns of each dataset, None for one number per row. One whose name ends
            with `_range` has two rows.

        Returns
        -------
        dict of str to numpy.ndarray
            The arrays as floats, read-only.
        """
        cure = "Pass the robot and the law with which the file was made."
        arrays = {name: self.array(name).astype(float, copy=False) for name in widths}
        for name, columns in widths.items():
            values = arrays[name]
            if values.shape[1:] != (() if columns is None else (columns,)) or not values.ndim:
                expected = "one number per row" if columns is None else f"{columns} columns"
                self.refuse(f"shape {values.shape}", name, expected, cure)
            rows = 2 if name.endswith("_range") else len(arrays["t"])
            if not 0 < len(values) == rows:
                self.refuse(f"{len(values)} rows", name, f"{rows or 1} rows")
            values.setflags(write=False)
        if not np.isfinite(arrays["t"]).all() or (np.diff(arrays["t"]) <= 0.0).any():
            self.refuse("other numbers", "t", "increasing times")
        return arrays

    def __contains__(self, name: str) -> bool:
        with self._library(name):
            return bool(self._file.id.links.exists(name.encode()))

    def _dataset(self, name: str) -> Any:
        """A dataset of the root, without resolving any name but its own."""
        from h5py import h5d, h5l, h5o

        links = self._file.id.links
        if not links.exists(name.encode()):
            self.refuse("another file: no dataset of this name", name)
        if links.get_info(name.encode()).type != h5l.TYPE_HARD:
            self.refuse("a link to elsewhere", name, "a dataset of this file")
        found = h5o.open(self._file.id, name.encode())
        if not isinstance(found, h5d.DatasetID):
            self.refuse("another kind of object", name, "a dataset")
        plan = found.get_create_plist()
        if plan.get_layout() == h5d.VIRTUAL or (
            plan.get_layout() == h5d.CONTIGUOUS and plan.get_external_count()
        ):
            self.refuse("numbers that are stored elsewhere", name, "a dataset of this file")
        return found

    def _numbers(self, found: Any, name: str, shape: tuple[int, ...], kind: Any) -> np.ndarray:
        """Numbers of a dataset that is not empty, from the bytes of the file."""
        from h5py import h5d

        size = math.prod(shape) * kind.itemsize
        plan, layout = found.get_create_plist(), found.get_create_plist().get_layout()
        filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
        if layout == h5d.CONTIGUOUS:
            start = found.get_offset()
            if start is None or not 0 <= start <= len(self._data) - size:
                self.refuse(f"shape {shape}, with fewer numbers in the file", name, "all numbers")
            values = np.frombuffer(self._data, kind, math.prod(shape), start)
            return values.reshape(shape).astype(kind.newbyteorder("="))
        if layout != h5d.CHUNKED or filters not in ([], [_DEFLATE]):
            self.refuse(f"other storage (filters {filters})", name, "numbers, or gzip")
        piece = tuple(plan.get_chunk())
        amount = math.prod(piece) * kind.itemsize
        if amount > LARGEST_CHUNK:
            self.refuse(f"chunks of {amount:.3g} bytes", name, f"at most {LARGEST_CHUNK} bytes")
        chunks = self._chunks(found, name, shape, piece)
        values = np.empty(shape, kind.newbyteorder("="))
        for corner, skipped, start, length in chunks:
            data = self._data[start : start + length]
            if filters and not skipped & 1:
                data = _inflated(data, amount)
            if len(data) != amount:
                self.refuse("a damaged chunk", name, f"chunks of {amount} bytes")
            block = np.frombuffer(data, kind).reshape(piece)
            ends = [min(a + n, m) for a, n, m in zip(corner, piece, shape, strict=True)]
            target = tuple(slice(a, b) for a, b in zip(corner, ends, strict=True))
            values[target] = block[tuple(slice(b - a) for a, b in zip(corner, ends, strict=True))]
        return values

    def _chunks(
        self, found: Any, name: str, shape: tuple[int, ...], piece: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], int, int, int]]:
        """Corner, skipped filters, start and length of each chunk: each once, none outside."""
        count = math.prod(-(-m // n) for m, n in zip(shape, piece, strict=True))
        found_at: dict[tuple[int, ...], tuple[int, int, int]] = {}

        def add(chunk: Any) -> bool | None:
            corner = tuple(chunk.chunk_offset)
            ends = zip(corner, shape, piece, strict=True)
            if corner in found_at or not all(0 <= a < m and not a % n for a, m, n in ends):
                found_at.clear()
                return True  # ends the iteration
            found_at[corner] = (chunk.filter_mask, chunk.byte_offset, chunk.size)
            return None

        found.chunk_iter(add)
        if len(found_at) != count:
            self.refuse(f"shape {shape}, with fewer numbers in the file", name, "all numbers")
        end = 0
        for _, start, length in sorted(found_at.values(), key=lambda chunk: chunk[1]):
            if start < end:
                self.refuse("chunks that share their bytes", name, "a chunk for each part")
            end = start + length
        return [(corner, *rest) for corner, rest in found_at.items()]

    def _check_text(self, found: Any, name: str, numbers: str = "") -> None:
        """Refuse a text or attribute that may need more memory than the file has."""
        from h5py import h5t

        kind = found.get_type()
        space = found.get_space()
        count = space.get_simple_extent_npoints()
        if not numbers and count != 1:
            self.refuse(f"{count} values", name, "one text")
        size = len(self._data)
        if isinstance(kind, h5t.TypeStringID) and kind.is_variable_str():
            # Each entry names an object of a heap, of which the file has some; all may be one.
            if count * self._heap > LARGEST_HDF5 // 4:
                self.refuse(f"{count} texts", name, "texts of a smaller size")
            return
        plain = isinstance(kind, h5t.TypeStringID) or (
            isinstance(kind, (h5t.TypeFloatID, h5t.TypeIntegerID, h5t.TypeEnumID))
            and kind.dtype.kind in numbers
        )
        if not plain:
            self.refuse("values of another type", name, "texts and numbers")
        if count * kind.get_size() > size:
            self.refuse(f"{count} values", name, "what the file contains")

    @cached_property
    def _heap(self) -> int:
        """Bytes of the largest heap of texts; damaged heaps may keep the library busy for ever."""
        data, largest, place = self._data, 0, self._data.find(_HEAP)
        while place >= 0:
            (size,) = struct.unpack_from("<Q", data[place : place + 16].ljust(16, b"\0"), 8)
            if not _is_heap(data, place, size):
                self.refuse(f"a damaged heap of texts at byte {place}")
            largest = max(largest, size)
            place = data.find(_HEAP, place + 1)
        return largest

    def _counted(self, value: Any, name: str) -> str:
        """A text; all together have an upper bound."""
        text = value.decode() if isinstance(value, bytes) else str(value)
        self._text_room -= len(text)
        if self._text_room < 0:
            self.refuse("longer texts", name, f"at most {LARGEST_TEXT} bytes of text")
        return text

    @contextmanager
    def _library(self, name: str) -> Iterator[None]:
        """Turn errors of the library, of every kind, into one of the package."""
        try:
            yield
        except ConcurError:
            raise
        except Exception as problem:
            self.refuse(f"another file ({shown(' '.join(str(problem).split()), 100)})", name)


def _is_heap(data: bytes, place: int, size: int) -> bool:
    """Whether the objects of a heap, each with number, length and content, fill it."""
    end, at, numbers = place + size, place + _HEAP_HEAD, set[int]()
    if end > len(data):
        return False
    while end - at >= _HEAP_HEAD:
        number, _, length = struct.unpack_from("<HHxxxxQ", data, at)
        if not number:  # free space, which includes its head
            return bool(at + length == end)
        if number in numbers:
            return False
        numbers.add(number)
        at += _HEAP_HEAD + -(-length // 8) * 8
    return bool(at <= end)


_AT_MOST = f"at most {LARGEST_HDF5 / 2**30:g} GiB of numbers in a file"


def _inflated(data: bytes, amount: int) -> bytes:
    """A chunk that must have an amount of bytes; one byte more, or less, shows another amount."""
    return zlib.decompressobj().decompress(data, amount + 1)


@contextmanager
def hdf5_file(path: Path, expected: str, cure: str) -> Iterator[Hdf5File]:
    """Open a file that others may have written.

    Parameters
    ----------
    path : Path
        The file.
    expected : str
        What it should be, with its article, for errors.
    cure : str
        What to do if it is another file.

    Yields
    ------
    Hdf5File
        The file; its methods raise `DescriptionError`.

    Raises
    ------
    DescriptionError
        If there is no such file, or it is no HDF5 file.
    """
    import h5py

    data = read_bytes(path, expected, cure, largest=LARGEST_HDF5)

    def refuse(came: str) -> NoReturn:
        raise DescriptionError(str(path), expected=expected, came=came, cure=cure, file=str(path))

    if not data.startswith(_SIGNATURE):
        refuse("another file (no HDF5 file)")
    try:
        file = h5py.File(io.BytesIO(data))
    except Exception as problem:
        refuse(f"another file ({shown(' '.join(str(problem).split()), 100)})")
    with file:
        yield Hdf5File(path, data, file, expected, cure)
