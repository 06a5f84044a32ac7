"""Certificates of univariate trees as lines of text, and what becomes of them when they are changed."""

import gzip
import json

import pytest

from mipforest.certificates import CertificateError, certify
from mipforest.certificates.univariate import Lines, read_problem

#: What takes the place of a word of a line.
WORDS = (
    "0", "1", "-1", "2", "3", "7", "100", "4503599627370495", "4503599627370496", "9" * 19, "9" * 30, "x", "", "1.5",
    "nan", "0x0.0p+0", "0x1.0p+0", "0x1.8p+1", "-0x1.0p+0", "0x1.0p+1023", "0x1.0p-1074", "0x1.0p+5000", "inf",
)  # fmt: skip


def lines_of(path):
    return gzip.decompress(path.read_bytes()).decode().splitlines()


def written(path, lines):
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    return path


def mutated(lines, chance):
    """Change lines by chance: one is gone, twice there or moved, or words are others, gone or added to."""
    lines = list(lines)
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        first = next((k for k, line in enumerate(lines) if line.startswith("grid")), 0)
        k, act = (
            chance.choice([chance.randrange(first, len(lines)), chance.randrange(len(lines))]),
            chance.randrange(10),
        )
        if act == 0:
            lines.insert(chance.randrange(len(lines)), lines.pop(k))
        elif act == 1:
            lines.insert(chance.randrange(len(lines)), lines[k])
        elif act == 2 and len(lines) > 2:
            del lines[k]
        else:
            words = lines[k].split(" ")
            i = chance.randrange(len(words))
            if act == 3:
                words[i] = chance.choice(WORDS)
            elif act == 4:
                words.insert(i, chance.choice([*WORDS, *words]))
            elif act == 5 and len(words) > 1:
                del words[i]
            elif words[i].lstrip("-").isdigit():
                words[i] = str(int(words[i]) + chance.choice([1, -1, 1, -1, 2, 10, -(10**6)]))
            elif words[i].lstrip("-").startswith("0x"):
                factor, term = chance.choice(
                    [(1, 1e-9), (1, 1), (1, -1), (2, 0), (0.5, 0), (1 + 1e-6, 0), (-1, 0)]
                )
                words[i] = (factor * float.fromhex(words[i]) + term).hex()
            lines[k] = " ".join(words)
    if chance.random() < 0.7 and lines[0].startswith("{"):
        # With the digest of the changed samples, so that not that alone is wrong.
        try:
            header = json.loads(lines[0])
            header["sha256"] = read_problem(Lines(line.encode() for line in lines[1:])).digest()
            lines[0] = json.dumps(header)
        except (CertificateError, ArithmeticError, ValueError):
            pass
    return lines


def bound_of(path):
    try:
        return certify(path)
    except CertificateError as refused:
        told = refused
    assert told.exit_code == 3
    assert str(told).startswith(str(path))
    return None


def reason_of(path):
    """Why the first checker alone refuses a file: the second one reads no names and no digest."""
    with pytest.raises(CertificateError) as caught:
        certify(path)
    told = str(caught.value)
    if "digest" in told:
        return "samples"
    return "names" if ", line 1: " in told else told
