"""Machine code is kept for later processes: never that of other sources, and never needed."""

import ast
import json
import os
import shutil
import stat
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from numba import config

import mipforest
from mipforest.searches.kernel_cache import KEPT, KernelFolder, cache_folder, fingerprint, remove_unused

PACKAGE = Path(mipforest.__file__).parent
SEARCHES = PACKAGE / "searches"

#: What the decorators import.
NEEDED = (
    "errors.py", "atomic.py", "time_budget.py",
    *(f"searches/{name}.py" for name in ("__init__", "kernel_cache", "kernel_compiler")),
)  # fmt: skip

#: Compiled functions are marked with one of them.
DECORATORS = {"entry", "kernel", "glue"}

ENTRY = """
from mipforest.searches import entry
from mipforest.searches.tiny.inner import raised

@entry
def reported(number):
    return raised(number)
"""

CALLED = """
from mipforest.searches import kernel

@kernel
def raised(number):
    return number + {}
"""

ENTRY_OF_OPERATIONS = """
from mipforest.searches import entry
from mipforest.searches.tiny.inner import Product, Sum, worth

@entry
def reported(number):
    return 10.0 * worth(Sum(number, 2.0)) + worth(Product(number, 2.0))
"""

OPERATIONS = """
from typing import NamedTuple
from mipforest.searches import implement, kernel, operation

class Sum(NamedTuple):
    a: float
    b: float

class Product(NamedTuple):
    a: float
    b: float

@operation
def worth(pair):
    raise NotImplementedError

declared = worth

@kernel
def worth(pair):
    return pair.a + pair.b

implement(Sum, worth)

@kernel
def worth(pair):
    return pair.a * pair.b

implement(Product, worth)
worth = declared
"""

#: Runs the kernel as a search is run, and says what came of it.
RUN = """
import json
from mipforest.searches import compile_by
from mipforest.searches.tiny.outer import reported
from mipforest.time_budget import TimeBudget

told, found = [], []
budget = TimeBudget(report=lambda line, **_: told.append(line))
seconds = compile_by(lambda: found.append(reported(1.0)), budget, "a search", 3)
print(json.dumps({"value": found[0], "compiled": seconds > 0.0, "told": told, "notes": budget.notes}))
"""

#: Root minds the permissions of files like anyone else.
AS_ANYONE = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if os.name == "posix" and not os.getuid()
    else []
)


class Checkout:
    """A package with the decorators of the searches, one entry, and one kernel in another file."""

    def __init__(self, root):
        self.root = root
        for name in NEEDED:
            (root / "mipforest" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PACKAGE / name, root / "mipforest" / name)
        (root / "mipforest" / "searches" / "tiny").mkdir()
        for folder in ("", "searches/tiny"):
            (root / "mipforest" / folder / "__init__.py").touch()
        (root / "mipforest" / "searches" / "tiny" / "outer.py").write_text(ENTRY)
        self.raise_by("1.0")

    def raise_by(self, number):
        # Numbers of different lengths: Python itself goes by the time, in seconds, and the size of a file.
        (self.root / "mipforest" / "searches" / "tiny" / "inner.py").write_text(CALLED.format(number))

    def run(self, cache, *, prefix=(), **environment):
        ours = {"PYTHONPATH": str(self.root), "XDG_CACHE_HOME": str(cache)}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        done = subprocess.run(
            [*prefix, sys.executable, "-c", RUN],
            env=inherited | ours | environment,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "checkout")


def test_a_change_of_what_an_entry_calls_is_seen_and_the_old_code_is_still_there_for_the_old_source(
    checkout, tmp_path
):
    cache = tmp_path / "cache"
    assert checkout.run(cache)["value"] == 2.0
    checkout.raise_by("1000.0")
    changed = checkout.run(cache)
    assert (changed["value"], changed["compiled"]) == (1001.0, True)
    checkout.raise_by("1.0")
    back = checkout.run(cache)
    assert (back["value"], back["compiled"], back["told"], back["notes"]) == (2.0, False, [], [])
    elsewhere = Checkout(tmp_path / "elsewhere").run(cache)
    assert (elsewhere["value"], elsewhere["compiled"]) == (2.0, False)
    assert len(list((cache / "mipforest").iterdir())) == 2


def test_operations_are_chosen_by_the_type_and_kept_for_later_processes(checkout, tmp_path):
    for name, text in (("outer", ENTRY_OF_OPERATIONS), ("inner", OPERATIONS)):
        (checkout.root / "mipforest" / "searches" / "tiny" / f"{name}.py").write_text(text)
    first, later = checkout.run(tmp_path / "cache"), checkout.run(tmp_path / "cache")
    assert (first["value"], first["compiled"]) == (32.0, True)
    assert (later["value"], later["compiled"]) == (32.0, False)


def test_kernels_are_loaded_where_an_entry_that_calls_them_is_compiled(checkout, tmp_path):
    cache = tmp_path / "cache"
    checkout.run(cache)
    (folder,) = (cache / "mipforest").iterdir()
    (kernel,) = folder.glob("*_raised-*")
    (entry,) = folder.glob("*_reported-*")
    entry.unlink()
    before = kernel.stat().st_ino
    again = checkout.run(cache)
    assert (again["value"], again["compiled"], entry.exists()) == (2.0, True, True)
    assert kernel.stat().st_ino == before  # exact: a file that is written again is another one


@pytest.mark.slow
def test_what_is_whole_but_no_machine_code_is_compiled_anew(checkout, tmp_path):
    """As by another installation of the compiler; what is damaged is found sooner, see below."""
    cache, nonsense = tmp_path / "cache", b"no machine code"
    checkout.run(cache)
    (folder,) = (cache / "mipforest").iterdir()
    (file,) = folder.glob("*_reported-*")
    file.write_bytes(sha256(nonsense).digest() + nonsense)
    again = checkout.run(cache)
    assert (again["value"], again["compiled"]) == (2.0, True)
    written = file.read_bytes()
    assert len(written) > 1000
    assert sha256(written[32:]).digest() == written[:32]


@pytest.mark.slow
def test_without_a_place_to_keep_it_the_code_is_compiled_and_that_is_said_once(checkout, tmp_path):
    for cache in (Path(os.devnull) / "x", Path("not absolute")):
        found = checkout.run(cache)
        assert (found["value"], found["compiled"]) == (2.0, True)
        assert [line.partition(";")[0] for line in found["told"]] == [
            "compiling a search for this kind of problem: about 3 s, which the time limit does not count"
        ]
        (note,) = found["notes"]
        assert note.startswith("each run has to compile the search")
        assert "set NUMBA_CACHE_DIR" in note
        assert ("/dev/null" in note) is cache.is_absolute()
    assert not (checkout.root / "not absolute").exists()


@pytest.mark.slow
@pytest.mark.skipif(bool(AS_ANYONE) and shutil.which("setpriv") is None, reason="root may write everywhere")
@pytest.mark.skipif(os.name != "posix", reason="permissions are others")
def test_what_another_user_keeps_is_read(checkout, tmp_path):
    place = tmp_path / "place"
    checkout.run(tmp_path, NUMBA_CACHE_DIR=str(place))
    folders = [place, *place.iterdir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        found = checkout.run(tmp_path, prefix=AS_ANYONE, NUMBA_CACHE_DIR=str(place))
        checkout.raise_by("1000.0")
        other = checkout.run(tmp_path, prefix=AS_ANYONE, NUMBA_CACHE_DIR=str(place))
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert (found["value"], found["compiled"], found["told"], found["notes"]) == (2.0, False, [], [])
    assert (other["value"], other["compiled"]) == (1001.0, True)
    assert "Permission denied" in other["notes"][0]


def test_a_switched_off_compiler_is_refused_in_words():
    done = subprocess.run(
        [sys.executable, "-c", "import mipforest.searches.prescription.enumeration"],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "SolverUnavailable: NUMBA_DISABLE_JIT is set" in done.stderr
    assert done.stderr.rstrip().endswith("unset it")


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        ("numba", "__version__", "9.9"),
        ("llvmlite", "__version__", "9.9"),
        ("numpy", "__version__", "9.9"),
        ("sys", "version", "9.9"),
        ("numba.core.config", "CPU_NAME", "generic"),
        ("numba.core.config", "CPU_FEATURES", "+other"),
        ("numba.core.config", "BOUNDSCHECK", 1),
        ("llvmlite.binding", "get_host_cpu_name", lambda: "other"),
    ],
)
def test_the_folder_is_named_after_the_compiler_and_the_processor(monkeypatch, where, name, value):
    before = fingerprint(SEARCHES)
    assert fingerprint(SEARCHES) == before
    monkeypatch.setattr(f"{where}.{name}", value)
    assert fingerprint(SEARCHES) != before


def test_code_of_sources_that_changed_since_they_were_imported_is_not_kept(tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "kernels.py").write_text("1")
    folder = KernelFolder(sources, tmp_path / "cache")
    folder.write("a.kernel", b"of 1")
    (sources / "kernels.py").write_text("2")
    folder.write("b.kernel", b"of 2")
    assert folder.read("a.kernel") == b"of 1"
    assert folder.read("b.kernel") is None
    assert KernelFolder(sources, tmp_path / "cache").path != folder.path


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 1000, bytes(1000)])
def test_a_damaged_file_is_removed(tmp_path, content):
    folder = KernelFolder(SEARCHES, tmp_path)
    folder.write("a.kernel", b"content")
    assert folder.read("a.kernel") == b"content"
    (folder.path / "a.kernel").write_bytes(content)
    assert folder.read("a.kernel") is None
    assert not (folder.path / "a.kernel").exists()


def test_what_stands_in_the_way_is_told_and_nothing_fails(tmp_path):
    folder = KernelFolder(SEARCHES, tmp_path)
    assert folder.check() == ""
    (folder.path / "a.kernel").mkdir()
    assert folder.read("a.kernel") is None
    folder.write("a.kernel", b"content")
    assert folder.obstacle.startswith(f"{tmp_path}: ")
    (tmp_path / "file").touch()
    assert "Not a directory" in KernelFolder(SEARCHES, tmp_path / "file").check()
    assert "HOME" in KernelFolder(SEARCHES, None).check()
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no files" in KernelFolder(empty, tmp_path).check()


needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")


def of_another(path, monkeypatch):
    """Let a file or folder belong to somebody else: root may give it away, others become somebody else."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


@needs_owners
def test_folder_and_files_are_made_for_the_user_alone(tmp_path):
    before = os.umask(0)
    try:
        folder = KernelFolder(SEARCHES, tmp_path / "cache")
        folder.write("a.kernel", b"content")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache", folder.path)]
    assert (modes, stat.S_IMODE((folder.path / "a.kernel").stat().st_mode)) == ([0o700, 0o700], 0o600)
    assert folder.read("a.kernel") == b"content"


@needs_owners
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o720, 0o702, 0o1777, None])
def test_a_folder_that_is_not_the_users_alone_is_not_used(tmp_path, monkeypatch, mode):
    folder = KernelFolder(SEARCHES, tmp_path)
    folder.write("a.kernel", b"content")
    folder.path.chmod(mode) if mode else of_another(folder.path, monkeypatch)
    again = KernelFolder(SEARCHES, tmp_path)
    assert again.read("a.kernel") is None
    assert ("others may write it" if mode else "owns it") in again.obstacle
    assert "NUMBA_CACHE_DIR" in again.obstacle
    again.write("b.kernel", b"content")
    assert not (folder.path / "b.kernel").exists()
    assert KernelFolder(SEARCHES, tmp_path).check() == again.obstacle


@needs_owners
@pytest.mark.parametrize("mode", [0o660, 0o602, None])
def test_a_file_that_is_not_the_users_alone_is_not_read_and_is_replaced(tmp_path, monkeypatch, mode):
    folder = KernelFolder(SEARCHES, tmp_path)
    folder.write("a.kernel", b"content")
    path = folder.path / "a.kernel"
    path.chmod(mode) if mode else of_another(path, monkeypatch)
    assert folder.read("a.kernel") is None
    monkeypatch.undo()
    folder.write("a.kernel", b"anew")
    assert folder.read("a.kernel") == b"anew"
    assert folder.obstacle == "" or mode is None


@needs_owners
def test_links_are_not_followed(tmp_path):
    folder = KernelFolder(SEARCHES, tmp_path / "cache")
    folder.write("a.kernel", b"content")
    (folder.path / "a.kernel").rename(tmp_path / "elsewhere")
    (folder.path / "a.kernel").symlink_to(tmp_path / "elsewhere")
    assert folder.read("a.kernel") is None
    folder.path.rename(tmp_path / "moved")
    folder.path.symlink_to(tmp_path / "moved")
    (tmp_path / "elsewhere").rename(tmp_path / "moved" / "b.kernel")
    assert KernelFolder(SEARCHES, tmp_path / "cache").read("b.kernel") is None


@needs_owners
def test_what_root_made_is_read(tmp_path, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("needs root")
    folder = KernelFolder(SEARCHES, tmp_path)
    folder.write("a.kernel", b"content")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert KernelFolder(SEARCHES, tmp_path).read("a.kernel") == b"content"


def test_only_folders_of_ours_that_were_used_last_long_ago_are_removed(tmp_path):
    def used(name, when):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.kernel").touch()
        os.utime(tmp_path / name, (when, when))

    ours = [f"mipforest-kernels-{k:024x}" for k in range(KEPT + 3)]
    for when, name in enumerate(ours, start=1000):
        used(name, when)
    for name in ("routing_data", "mipforest-kernels-mine", "other_" + "0" * 40):
        used(name, 0)
    (tmp_path / ours[0] / "notes.txt").touch()
    os.utime(tmp_path / ours[0], (1, 1))
    (tmp_path / ours[-1]).rename(tmp_path / "target")
    (tmp_path / ours[-1]).symlink_to(tmp_path / "target")
    remove_unused(tmp_path / ours[-2])
    left = {path.name for path in tmp_path.iterdir()}
    kept = set(ours[2:]) | {
        ours[0]
    }  # KEPT of them with the new one; that with a file of somebody else; the link
    assert left == kept | {"routing_data", "mipforest-kernels-mine", "other_" + "0" * 40, "target"}
    assert (tmp_path / "target" / "f.kernel").exists()


def test_another_process_may_remove_the_folder_at_any_time(tmp_path):
    folder = KernelFolder(SEARCHES, tmp_path)
    folder.write("a.kernel", b"content")
    shutil.rmtree(folder.path)
    assert folder.read("a.kernel") is None
    folder.write("a.kernel", b"content")
    assert folder.read("a.kernel") == b"content"
    assert folder.obstacle == ""
    assert not stat.S_ISLNK(folder.path.lstat().st_mode)


def test_a_home_that_is_unknown_is_not_the_working_directory(monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "~/.cache")
    if sys.platform.startswith("linux"):
        assert cache_folder() is None
    monkeypatch.setattr(config, "CACHE_DIR", "own")
    assert cache_folder() == Path("own").absolute()


def test_kernels_rest_on_nothing_outside_the_sources_that_name_the_folder():
    """What a kernel names comes from the searches: a change elsewhere would not be seen."""
    found = 0
    for path in PACKAGE.parent.glob("mipforest/**/*.py"):
        text = path.read_text()
        if not any(f"\n@{decorator}\n" in text for decorator in DECORATORS):
            continue
        assert path.name != "plugin.py", "files of that name are left out"
        assert ".plugin import" not in text
        module = ast.parse(text)
        foreign = {
            name.asname or name.name
            for node in ast.walk(module)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mipforest")
            for name in node.names
            if not (node.module or "").startswith("mipforest.searches")
        }
        for function in ast.walk(module):
            if not isinstance(function, ast.FunctionDef):
                continue
            if DECORATORS & {node.id for node in function.decorator_list if isinstance(node, ast.Name)}:
                found += 1
                assert path.is_relative_to(SEARCHES)
                body = {
                    node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)
                }
                assert not body & foreign, f"{path}: {function.name} uses {body & foreign}"
    assert found > 100
