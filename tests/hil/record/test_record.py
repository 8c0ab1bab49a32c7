"""Records: read back by name, damaged or not, and written as HDF5 and MCAP for other tools."""

import json
import shutil
import sys

import h5py
import numpy as np
import pytest
from mcap.reader import make_reader

from concur.errors import DescriptionError
from hil.errors import RecordError
from hil.record import Record
from hil.record._drain import ROWS_FILE, write_json
from hil.record._mcap import TOPICS
from hil.record.manifest import make_manifest
from hil.record.rows import SCALARS, Layout
from tests.hil._records import (
    SMALL,
    layout_of_rig,
    make_rig,
    numbered,
    task_and_servo,
    write_rows,
)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Folder of a record of 40 rows in four chunks, never to be changed."""
    folder = tmp_path_factory.mktemp("record")
    rig = make_rig(folder)
    layout = layout_of_rig(rig)
    manifest = make_manifest(rig, layout, task_and_servo()[1], mode="mock")
    manifest["wall_minus_clock"] = 1.6e9
    manifest["end"] = {"reason": "done", "rows": 40, "lost": 0, "unwritten": 0}
    write_json(folder / "manifest.json", manifest)
    rows = numbered(layout, 0, 40)
    rows[:, layout.spans["time"]] = 50.0 + 0.004 * np.arange(40)[:, None]
    rows[7, layout.spans["elapsed"]] = np.nan
    write_rows(folder, layout, *((k, rows[k : k + 10]) for k in range(0, 40, 10)))
    return folder, layout, rows


@pytest.fixture
def folder(source, tmp_path):
    return shutil.copytree(source[0], tmp_path / "record")


def test_columns_come_by_name(source):
    folder, layout, rows = source
    record = Record.load(folder)
    assert record.complete
    assert record.notes == ()
    assert record.layout == layout
    assert record.axes == layout.axes
    np.testing.assert_array_equal(record.rows, rows)
    for name in record.names:
        expected = rows[:, layout.spans[name]]
        scalar = name in dict(SCALARS)
        np.testing.assert_array_equal(record[name], expected[:, 0] if scalar else expected)
    np.testing.assert_allclose(record.time, 0.004 * np.arange(40), atol=1e-12)
    np.testing.assert_array_equal(record.wall, record["time"] + 1.6e9)
    assert record.duration == pytest.approx(39 * 0.004)
    assert "40 rows" in repr(record)


def test_every_column_has_a_name_and_a_unit(source):
    record = Record.load(source[0])
    for name, span in record.layout.spans.items():
        columns = record.columns(name)
        assert len(columns) == span.stop - span.start
        assert all(column and unit for column, unit in columns)
    assert record.columns("torque")[0] == ("left_wheel", "N m")
    assert record.columns("q")[2] == ("chassis.heading", "rad")
    assert record.columns("error")[4] == ("hand.z", "m")
    assert record.columns("s")[1] == ("right_wheel", "rad/s")
    assert record.columns("compute") == [("compute", "s")]


def test_an_unknown_name_is_refused(source):
    with pytest.raises(RecordError, match="one of the names cycle, time"):
        Record.load(source[0])["torques"]


def test_a_changed_byte_costs_its_chunk_and_leaves_a_gap(folder, source):
    data = bytearray((folder / ROWS_FILE).read_bytes())
    data[len(data) // 2 - 500] ^= 4
    (folder / ROWS_FILE).write_bytes(data)
    record = Record.load(folder)
    assert len(record) == 30
    assert record.index[0] == 0
    assert record.index[-1] == 39
    np.testing.assert_array_equal(record.rows, source[2][record.index])
    assert "10 rows are missing between others" in record.notes
    assert "checksum" in record.notes[-1]


@pytest.mark.parametrize("content", [None, b""])
def test_a_record_without_rows(folder, content, tmp_path):
    (folder / ROWS_FILE).unlink()
    if content is not None:
        (folder / ROWS_FILE).write_bytes(content)
    record = Record.load(folder)
    assert len(record) == 0
    assert record.duration == 0.0
    assert record["torque"].shape == (0, 5)
    assert record["time"].shape == (0,)
    assert record.save(tmp_path / "empty.h5").exists()
    assert record.save_mcap(tmp_path / "empty.mcap").exists()


def test_an_invalid_folder_is_rejected(tmp_path):
    with pytest.raises(RecordError, match="Name the folder of one run"):
        Record.load(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("{", "Take it from a copy"),
        ("[]", "the version of concur"),
        ('{"format": "something", "version": 1}', "the version of concur"),
        ('{"format": "concur rig record", "version": 99}', "the version of concur"),
        ('{"format": "concur rig record", "version": 3}', "begins with the layout"),
        ('{"format": "concur rig record", "version": 3, "layout": {"axes": 3}}', "with the layout"),
    ],
)
def test_invalid_manifests_are_rejected(folder, text, cure):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(RecordError, match=cure):
        Record.load(folder)


def test_rows_of_another_layout_are_refused(folder):
    (folder / ROWS_FILE).unlink()
    write_rows(folder, SMALL, (0, numbered(SMALL, 0, 3)))
    with pytest.raises(RecordError, match="Put manifest and rows of the same run"):
        Record.load(folder)


def test_hdf5_has_all_columns_with_names_and_units(source, tmp_path):
    folder, layout, rows = source
    path = Record.load(folder).save(tmp_path / "run.h5")
    with h5py.File(path) as file:
        assert set(file) == {*layout.spans, "index"}
        for name, span in layout.spans.items():
            np.testing.assert_array_equal(file[name][...].reshape(40, -1), rows[:, span])
        assert file["torque"].attrs["unit"] == "N m"
        assert list(file["torque"].attrs["columns"]) == list(layout.axes)
        assert list(file["q"].attrs["units"])[:3] == ["m", "m", "rad"]
        assert file["time"].attrs["unit"] == "s"
        assert json.loads(file.attrs["manifest"])["mode"] == "mock"
        np.testing.assert_array_equal(file["index"], np.arange(40))


def test_hdf5_that_cannot_be_written_is_refused(source, tmp_path):
    with pytest.raises(DescriptionError, match="a file that can be written"):
        Record.load(source[0]).save(tmp_path / "none" / "run.h5")


def test_a_layout_survives_its_dictionary(source):
    layout = source[1]
    fields = layout.to_dict()
    lists = {name: tuple(fields[name]) for name in ("axes", "limits")}
    assert Layout(**{**fields, **lists}) == layout


# -- MCAP files, read by the reader of the format's own library --------------------------------


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    rig = make_rig(folder)
    layout = layout_of_rig(rig)
    manifest = make_manifest(rig, layout, task_and_servo()[1])
    manifest["wall_minus_clock"] = 1.6e9
    write_json(folder / "manifest.json", manifest)
    rows = numbered(layout, 0, 25)
    rows[:, layout.spans["time"]] = 50.0 + 0.004 * np.arange(25)[:, None]
    rows[3, layout.spans["torque"]] = [np.nan, np.inf, -np.inf, 1e308, -0.0]
    write_rows(folder, layout, (0, rows))
    return Record.load(folder)


@pytest.fixture(scope="module")
def messages(record, tmp_path_factory):
    path = record.save_mcap(tmp_path_factory.mktemp("mcap") / "run.mcap")
    with open(path, "rb") as stream:
        reader = make_reader(stream, validate_crcs=True)
        found = list(reader.iter_messages())
        metadata = list(reader.iter_metadata())
    return found, metadata


def strict(text):
    """JSON as the standard has it: without NaN and infinities."""

    def refuse(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


def test_each_cycle_has_a_message_on_each_topic(messages, record):
    found, _ = messages
    for topic in TOPICS:
        mine = [message for _, channel, message in found if channel.topic == f"/{topic}"]
        assert [message.sequence for message in mine] == list(range(25))
        stamps = np.array([message.log_time for message in mine]) - 1_600_000_050_000_000_000
        np.testing.assert_allclose(stamps, 4e6 * np.arange(25), atol=1e3)
    assert len(found) == 25 * len(TOPICS)


def test_numbers_come_back_exactly(messages, record):
    found, _ = messages
    seen = set()
    for _, channel, message in found:
        data, k = strict(message.data), message.sequence
        for name in TOPICS[channel.topic[1:]]:
            seen.add(name)
            expected = np.atleast_1d(record[name][k])
            values = data[name].values() if isinstance(data[name], dict) else [data[name]]
            for value, number in zip(values, expected, strict=True):
                assert value == number if np.isfinite(number) else value is None
    assert seen == set(record.names)


def test_schemas_tell_types_and_units(messages):
    found, _ = messages
    schemas = {channel.topic: schema for schema, channel, _ in found}
    assert all(schema.encoding == "jsonschema" for schema in schemas.values())
    torque = json.loads(schemas["/torque"].data)["properties"]["torque"]
    assert torque["properties"]["turret"]["description"] == "turret [N m]"
    state = json.loads(schemas["/state"].data)["properties"]["q"]
    assert state["properties"]["chassis_x"]["description"] == "chassis.x [m]"
    for _, channel, message in found:
        properties = json.loads(schemas[channel.topic].data)["properties"]
        assert set(strict(message.data)) == set(properties)


def test_the_manifest_goes_along(messages, record):
    (metadata,) = messages[1]
    assert metadata.name == "manifest"
    assert json.loads(metadata.metadata["json"])["files"] == record.manifest["files"]


def test_a_file_that_cannot_be_written_is_refused(record, tmp_path):
    with pytest.raises(RecordError, match="a file that can be written"):
        record.save_mcap(tmp_path / "none" / "run.mcap")


def test_a_missing_package_is_named_with_its_extra(record, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcap.writer", None)
    with pytest.raises(RecordError, match=r"\[rig\]"):
        record.save_mcap(tmp_path / "run.mcap")
