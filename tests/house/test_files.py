"""Reading what strangers wrote: nothing outside of a folder, also if names change meanwhile."""

import os

import pytest

from concur.errors import DescriptionError
from concur.files import confined, read_bytes


def read(path):
    return read_bytes(path, "a file", "Name one.")


def test_links_inside_of_the_folder_are_followed(tmp_path):
    (tmp_path / "real").write_bytes(b"inside")
    (tmp_path / "name").symlink_to(tmp_path / "real")
    with confined(tmp_path):
        assert read(tmp_path / "name") == b"inside"


@pytest.mark.parametrize("back", [False, True])
def test_a_name_that_changes_before_it_is_opened_leads_nowhere(tmp_path, monkeypatch, back):
    """Between the look at the name and the opening it becomes a link that leads out."""
    folder, secret = tmp_path / "record", tmp_path / "secret"
    folder.mkdir()
    secret.write_bytes(b"secret")
    name = folder / "rig.toml"
    name.write_bytes(b"inside")
    opened = os.open

    def swapped(path, flags, *rest, **more):
        name.unlink()
        name.symlink_to(secret)
        handle = opened(path, flags, *rest, **more)
        if back:
            name.unlink()
            name.write_bytes(b"inside")
        return handle

    monkeypatch.setattr("concur.files.os.open", swapped)
    with confined(folder), pytest.raises(DescriptionError, match="leads elsewhere"):
        read(name)
