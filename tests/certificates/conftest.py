"""The second checker of certificates, compiled once."""

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def second(tmp_path_factory):
    """The second checker, which says whether it certifies a file, and what bound."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    program = tmp_path_factory.mktemp("second") / "second_checker"
    source = Path(__file__).with_name("second_checker.cpp")
    flags = ["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", program, source], check=True, timeout=300)

    def checked(lines):
        text = "".join(f"{line}\n" for line in lines).encode()
        done = subprocess.run([program], input=text, capture_output=True, timeout=300, check=False)
        assert done.returncode in (0, 3), (done.returncode, done.stdout, done.stderr)
        words = done.stdout.decode().split()
        assert words[0] == ("refused" if done.returncode else "certified")
        return None if done.returncode else float(words[words.index("bound") + 1])

    return checked
