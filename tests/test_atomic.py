"""A file appears whole or not at all."""

import errno
import os
import stat

import pytest

from mipforest.atomic import atomic_write


def test_bytes_and_text_replace_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with atomic_write(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_bytes() == b"new"
    with atomic_write(path, "w") as file:
        file.write("é\n")
    assert path.read_bytes() == "é\n".encode()
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError])
def test_an_exception_leaves_everything_as_before(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail_half_way():
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_permissions_follow_the_umask(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    with atomic_write(tmp_path / "atomic"):
        pass
    assert stat.S_IMODE((tmp_path / "atomic").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_symbolic_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"x")
    assert link.is_symlink()
    assert target.read_bytes() == b"x"


def test_system_errors_pass_unchanged(tmp_path):
    absent = tmp_path / "missing" / "a"
    with pytest.raises(FileNotFoundError) as caught, atomic_write(absent):
        pass
    assert caught.value.filename == str(absent)
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path):
        pass
    with pytest.raises(OSError, match="regular"), atomic_write(os.devnull):
        pass
    assert os.listdir(tmp_path) == []


def test_a_full_disk_names_the_file(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(OSError, match="No space") as caught, atomic_write(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(path)
    assert os.listdir(tmp_path) == []


def test_other_modes_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'wb'"), atomic_write(tmp_path / "a", "a"):
        pass
