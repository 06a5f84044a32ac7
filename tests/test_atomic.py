"""A file appears whole or not at all."""

import errno
import os
import stat
import subprocess
import sys

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


def test_a_symbolic_link_is_replaced_and_what_it_names_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("precious")
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"x")
    assert not link.is_symlink()
    assert (link.read_bytes(), target.read_text()) == (b"x", "precious")


def test_a_folder_that_is_reached_by_a_link_is_written(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with atomic_write(tmp_path / "link" / "a") as file:
        file.write(b"x")
    assert (tmp_path / "folder" / "a").read_bytes() == b"x"


def test_file_and_folder_are_flushed(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    )
    with atomic_write(tmp_path / "a"):
        pass
    assert flushed[0].endswith(".part")
    assert flushed[1:] == [str(tmp_path)]


KILLED = """
import os, sys
from mipforest.atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os._exit(9)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "a"
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    (left,) = tmp_path.iterdir()
    with atomic_write(path):
        pass
    assert left.exists()  # it is young: another process may just have made it
    other = tmp_path / ".other.part"
    other.touch()
    for old in (left, other):
        os.utime(old, (0, 0))
    with atomic_write(tmp_path / "b"):  # whatever file is written: that of a certificate has a name once
        pass
    assert sorted(os.listdir(tmp_path)) == [".other.part", "a", "b"]


def test_a_slow_writer_keeps_its_file(tmp_path):
    path = tmp_path / "a"
    with atomic_write(path) as slow:
        os.utime(slow.name, (0, 0))
        with atomic_write(path) as quick:
            quick.write(b"quick")
        slow.write(b"slow")
    assert path.read_bytes() == b"slow"


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
