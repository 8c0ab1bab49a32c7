"""HDF5 files of others: no other file is read, no declared number reserves memory."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import concur as cc
from concur import hdf5
from concur.campaign import CampaignResult
from concur.errors import ConcurError, DescriptionError
from concur.hdf5 import hdf5_file
from concur.show.viewer import Film
from concur.simulation import Motion, Run, forced_motion, simulate, write_arrays

SECRET = np.arange(100.0)
RAGGED = np.empty(1, object)
RAGGED[0] = np.ones(3)
BOMB = zlib.compress(bytes(2**27), 1)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Callable[..., Any]]]:
    """An honest file of each kind, with its reader and the dataset that is attacked."""
    folder = tmp_path_factory.mktemp("honest")
    robot = cc.robots.planar_floater()
    model = cc.reduce(robot)
    servo = cc.Servo(model, [cc.Output("hand", "forearm", "R2", point=(1.0, 0, 0))], 4, 4)
    q0 = [0.0, 0.0, 0.0, 0.6, 0.9]
    run = simulate(robot, servo, cc.references.hold(servo.output(q0)), 0.05, q0, [0, 0], dt=0.01)
    motion = forced_motion(model, lambda t, q, s: [0.0, 0.1], 0.05, q0, [0, 0], dt=0.01)
    names = (("mass of arm", "kg"),)
    campaign = CampaignResult(
        *(names, (("error", "m"),), range(9), np.ones((9, 1)), np.ones((9, 1)), np.full(9, 5.0)),
        **{"duration": 5.0, "method": "independent", "seed": 0, "key": ""},
    )
    return {
        "run": (run.save(folder / "run.h5"), lambda path: Run.load(path, servo)),
        "film": (
            run.save(folder / "film.h5"),
            lambda path: Film.read(str(path)),
        ),
        "motion": (motion.save(folder / "motion.h5"), lambda path: Motion.load(path, model)),
        "campaign": (campaign.save(folder / "campaign.h5"), CampaignResult.load),
    }


def external(file: h5py.File, name: str, folder: Path) -> None:
    """The numbers are those of any file of this machine."""
    shape = file[name].shape
    del file[name]
    SECRET.tofile(folder / "secret.bin")
    file.create_dataset(name, shape, float, external=[(folder / "secret.bin", 0, 800)])


def linked(file: h5py.File, name: str, folder: Path) -> None:
    with h5py.File(folder / "other.h5", "w") as other:
        other[name] = file[name][()]
    del file[name]
    file[name] = h5py.ExternalLink(str(folder / "other.h5"), f"/{name}")


def soft(file: h5py.File, name: str, folder: Path) -> None:
    file.move(name, "elsewhere")
    file[name] = h5py.SoftLink("/elsewhere")


def virtual(file: h5py.File, name: str, folder: Path) -> None:
    values = file[name][()]
    with h5py.File(folder / "source.h5", "w") as other:
        other["x"] = values
    layout = h5py.VirtualLayout(values.shape, float)
    layout[...] = h5py.VirtualSource(str(folder / "source.h5"), "x", values.shape)
    del file[name]
    file.create_virtual_dataset(name, layout)


def unfilled(file: h5py.File, name: str, folder: Path) -> None:
    rest = file[name].shape[1:]
    del file[name]
    file.create_dataset(name, (2_000_000_000, *rest), float)


def unfilled_chunks(file: h5py.File, name: str, folder: Path) -> None:
    rest = file[name].shape[1:]
    del file[name]
    file.create_dataset(name, (2_000_000_000, *rest), float, compression="gzip")


def one_chunk_missing(file: h5py.File, name: str, folder: Path) -> None:
    values = file[name][()]
    del file[name]
    data = file.create_dataset(name, values.shape, float, chunks=(2, *values.shape[1:]))
    data[2:] = values[2:]


def bomb(file: h5py.File, name: str, folder: Path) -> None:
    """A chunk that inflates to a thousand times the size that it declares."""
    shape = file[name].shape
    del file[name]
    data = file.create_dataset(name, shape, float, chunks=shape, compression="gzip")
    data.id.write_direct_chunk((0,) * len(shape), BOMB, 0)


def short_chunk(file: h5py.File, name: str, folder: Path) -> None:
    shape = file[name].shape
    del file[name]
    data = file.create_dataset(name, shape, float, chunks=shape, compression="gzip")
    data.id.write_direct_chunk((0,) * len(shape), zlib.compress(bytes(8)), 0)


def huge_chunk(file: h5py.File, name: str, folder: Path) -> None:
    shape, size = file[name].shape, hdf5.LARGEST_CHUNK // 8 + 1
    del file[name]
    chunks = (size, *shape[1:])
    file.create_dataset(name, shape, float, chunks=chunks, maxshape=(None, *shape[1:]))


def filtered(file: h5py.File, name: str, folder: Path) -> None:
    values = file[name][()]
    del file[name]
    file.create_dataset(name, data=values, compression="lzf")


def twice_deflated(file: h5py.File, name: str, folder: Path) -> None:
    values = file[name][()]
    del file[name]
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_chunk(values.shape)
    plan.set_deflate(9)
    plan.set_deflate(9)
    space = h5py.h5s.create_simple(values.shape)
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.IEEE_F64LE, space, plan)
    file[name][...] = values


def references(file: h5py.File, name: str, folder: Path) -> None:
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, h5py.ref_dtype)


def ragged(file: h5py.File, name: str, folder: Path) -> None:
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, h5py.vlen_dtype(float))


def compound(file: h5py.File, name: str, folder: Path) -> None:
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, [("a", float), ("b", float)])


def group(file: h5py.File, name: str, folder: Path) -> None:
    del file[name]
    file.create_group(name)


def texts(file: h5py.File, name: str, folder: Path) -> None:
    shape = file[name].shape
    del file[name]
    file.create_dataset(name, shape, h5py.string_dtype())


def scalar(file: h5py.File, name: str, folder: Path) -> None:
    del file[name]
    file[name] = 1.0


def empty(file: h5py.File, name: str, folder: Path) -> None:
    del file[name]
    file[name] = h5py.Empty(float)


def absent(file: h5py.File, name: str, folder: Path) -> None:
    del file[name]


ATTACKS = [
    *(external, linked, soft, virtual, unfilled, unfilled_chunks, one_chunk_missing, bomb),
    *(short_chunk, huge_chunk, filtered, twice_deflated, references, ragged, compound, group),
    *(texts, scalar, empty, absent),
]
"""Changes of one dataset of a file, each of which its reader rejects."""

ATTACKED = {"run": "u", "film": "u", "motion": "u", "campaign": "values"}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("kind", ["run", "film", "motion", "campaign"])
def test_a_forged_dataset_is_rejected(kind, attack, readers, tmp_path):
    honest, load = readers[kind]
    path = tmp_path / "forged.h5"
    path.write_bytes(honest.read_bytes())
    with h5py.File(path, "r+") as file:
        attack(file, ATTACKED[kind], tmp_path)
    tracemalloc.start()
    try:
        with pytest.raises(DescriptionError) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()
    assert caught.value.data.get("dataset", ATTACKED[kind]) == ATTACKED[kind]
    assert caught.value.file == str(path)


@pytest.mark.parametrize("kind", ["run", "film", "motion", "campaign"])
def test_honest_files_are_read(kind, readers):
    path, load = readers[kind]
    assert load(path) is not None


def test_chunks_that_share_their_bytes_are_rejected(tmp_path):
    """All entries of the index name one chunk: a small file would become large numbers."""
    values = np.zeros((4096, 8))
    path = tmp_path / "shared.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", data=values, chunks=(64, 8), compression="gzip")
        places = [data.id.get_chunk_info(k) for k in range(data.id.get_num_chunks())]
    raw, first = path.read_bytes(), places[0]
    assert len({place.size for place in places}) == 1
    for place in places[1:]:
        raw = raw.replace(
            struct.pack("<Q", place.byte_offset), struct.pack("<Q", first.byte_offset)
        )
    path.write_bytes(raw)
    with h5py.File(path) as file:  # the library follows the index
        found = {file["x"].id.get_chunk_info(k).byte_offset for k in range(64)}
        assert found == {places[0].byte_offset}
    with (
        hdf5_file(path, "numbers", "Write them.") as opened,
        pytest.raises(DescriptionError, match=r"dataset `x`.*share"),
    ):
        opened.array("x")


@pytest.mark.parametrize(
    "forge",
    [
        lambda file: file.attrs.create("many", ["x"] * 3000, dtype=h5py.string_dtype()),
        lambda file: file.attrs.create("reference", file.ref, dtype=h5py.ref_dtype),
        lambda file: file.attrs.create("ragged", RAGGED, dtype=h5py.vlen_dtype(float)),
        lambda file: file.attrs.create("pair", np.zeros(2, [("a", float)])),
    ],
)
def test_forged_attributes_are_rejected(forge, tmp_path):
    """Thousands of texts may all be the one large text of the file."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["text"] = "x" * 2**20
        forge(file)
    with hdf5_file(path, "texts", "Write them.") as opened, pytest.raises(DescriptionError):
        opened.attributes()


def test_texts_are_counted_together(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["a"], file.attrs["b"], file["c"] = "x" * 40, ["y" * 30, "z" * 20], "w" * 10
    for room, fits in ((100, True), (99, False)):
        monkeypatch.setattr(hdf5, "LARGEST_TEXT", room)
        with hdf5_file(path, "texts", "Write them.") as opened:
            assert opened.attributes()["a"] == "x" * 40
            if fits:
                assert opened.text("c") == "w" * 10
            else:
                with pytest.raises(DescriptionError, match="dataset `c`"):
                    opened.text("c")


@pytest.mark.parametrize("more", [0, 1])
def test_numbers_are_counted_together(more, tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=np.zeros(50_000), compression="gzip")
        file.create_dataset("b", data=np.zeros(50_000 + more), compression="gzip")
    monkeypatch.setattr(hdf5, "LARGEST_HDF5", 800_000)
    with hdf5_file(path, "x", "y") as opened:
        opened.array("a")
        if not more:
            assert len(opened.array("b")) == 50_000
        else:
            with pytest.raises(DescriptionError, match=r"dataset `b`.*GiB of numbers"):
                opened.array("b")


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 3), (5000,), (3000, 50), (0, 4)])
@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<i8", ">i2", "|u1"])
@pytest.mark.parametrize("gzip", [False, True])
def test_all_that_is_written_is_read(shape, kind, gzip, tmp_path):
    values = np.random.default_rng(3).integers(0, 99, shape).astype(kind)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        options = {"compression": "gzip"} if gzip and shape else {}
        file.create_dataset("x", data=values, **options)
    with hdf5_file(path, "numbers", "Write them.") as opened:
        found = opened.array("x")
    assert (found.shape, found.dtype.kind) == (values.shape, values.dtype.kind)
    np.testing.assert_array_equal(found, values)


def test_a_large_file_of_a_robot_at_rest_is_read(tmp_path):
    """A thousand times smaller than its numbers, and honest."""
    rows = 100_000
    arrays = {
        "t": (np.arange(rows) * 1e-3, [("t", "s")]),
        "q": (np.zeros((rows, 20)), [("x", "m")] * 20),
    }
    path = write_arrays(tmp_path / "rest.h5", arrays, {})
    with hdf5_file(path, "numbers", "Write them.") as opened:
        found = opened.table({"t": None, "q": 20})
    np.testing.assert_array_equal(found["q"], 0.0)
    np.testing.assert_array_equal(found["t"], arrays["t"][0])


@pytest.mark.parametrize("kind", ["run", "film", "campaign"])
def test_changed_bytes_are_one_error_or_numbers(kind, readers, tmp_path):
    """No other exception than those of the package, whatever bytes have changed."""
    honest, load = readers[kind]
    path, data = tmp_path / "changed.h5", honest.read_bytes()
    rng = np.random.default_rng(7)
    for _ in range(20):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), 4):
            changed[place] = rng.integers(256)
        end = rng.integers(1, len(data) + 1) if rng.random() < 0.2 else None
        path.write_bytes(changed[:end])
        with suppress(ConcurError):
            load(path)
