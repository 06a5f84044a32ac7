"""Damage to files: bytes, lines, numbers and, in JSON, values; every choice drawn from one generator."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from random import Random
from typing import Any

HUGE = [
    b"1e999",
    b"-1e308",
    b"9" * 400,
    b"nan",
    b"-inf",
    b"0x1p3",
    b"1_000",
    b"1e-400",
    b"99999999999999999999",
]
ODD_BYTES = [
    b"\0",
    b"\xff\xfe",
    b"\x85",
    b"\xe2\x80\xa8",
    b"\r",
    b"\x1b[2J",
    b"\xef\xbb\xbf",
    b"'",
    b'"',
    b"\\",
]
ODD_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2.5,
    1e308,
    10**400,
    "",
    "x",
    "\x1b[2J",
    "../../x.csv",
    [],
    {},
    [[]],
    [None],
]


#: Bytes that copies of a line may have: the damaged file itself counts in the memory of the process.
LARGEST = 20_000_000


def mutated(chance: Random, content: bytes) -> bytes:
    """Damage a file in one to three ways."""
    if content[:2] == b"\x1f\x8b":
        return _mutated_gzip(chance, content)
    if content.startswith((b"PAR1", b"SQLite")) and chance.random() < 0.8:
        return _flip(chance, content)  # most other damage does not reach behind the first check
    if content[:1] == b"{" and chance.random() < 0.6:
        return _mutated_json(chance, content)
    for _ in range(chance.randint(1, 3)):
        content = chance.choice(_MUTATIONS)(chance, content)
    return content


def _flip(chance: Random, content: bytes) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.randint(1, 8)):
        if damaged:
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def _truncate(chance: Random, content: bytes) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _insert(chance: Random, content: bytes) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice([*HUGE, *ODD_BYTES]) + content[at + chance.randrange(3) :]


def _lines(chance: Random, content: bytes) -> bytes:
    """Duplicate, delete, swap or move lines between places."""
    lines = content.splitlines(keepends=True) or [b""]
    i, j = chance.randrange(len(lines)), chance.randrange(len(lines))
    kind = chance.randrange(4)
    if kind == 0:
        lines[i:i] = [lines[j]] * min(chance.choice([1, 1, 1000]), 1 + LARGEST // (1 + len(lines[j])))
    elif kind == 1:
        del lines[i : i + chance.randint(1, 5)]
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = lines[i].rstrip(b"\r\n") + b" " + lines[j]
    return b"".join(lines)


def _word(chance: Random, content: bytes) -> bytes:
    """Replace a word by another of the file, or by a huge number."""
    lines = content.splitlines(keepends=True) or [b""]
    i = chance.randrange(len(lines))
    words = lines[i].split(b" ")
    other = chance.choice(chance.choice(lines).split(b" ") + HUGE)
    words[chance.randrange(len(words))] = other
    lines[i] = b" ".join(words)
    return b"".join(lines)


def _long_line(chance: Random, content: bytes) -> bytes:
    at = chance.randrange(len(content) + 1)
    return (
        content[:at]
        + chance.choice([b"x", b" 1", b"0", b"[", b"#"]) * chance.choice([300, 70_000])
        + content[at:]
    )


def _nest(chance: Random, content: bytes) -> bytes:
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.choice([b"[", b'{"a":']) * chance.choice([10, 100_000]) + content[at:]


_MUTATIONS = (_flip, _truncate, _insert, _lines, _lines, _word, _word, _long_line, _nest)


def _mutated_gzip(chance: Random, content: bytes) -> bytes:
    """Damage what is packed, or the packed bytes, or make it expand a thousand times."""
    kind = chance.randrange(20)
    if kind == 0:
        filler = chance.choice([b"\n", b"* x\n", b" " * 60_000 + b"\n", b"\0"])
        text = gzip.decompress(content)
        at = chance.randrange(len(text) + 1)
        return gzip.compress(text[:at] + filler * (30_000_000 // len(filler)) + text[at:], 9)
    if kind < 10:
        return chance.choice([_flip, _truncate])(chance, content)
    return gzip.compress(mutated(chance, gzip.decompress(content)), 1, mtime=0)


def _mutated_json(chance: Random, content: bytes) -> bytes:
    """Replace, remove or add values anywhere in a JSON document."""
    document = json.loads(content)
    for _ in range(chance.randint(1, 3)):
        holder = chance.choice(_holders(document))
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys or chance.random() < 0.1:
            if isinstance(holder, dict):
                holder["added"] = _odd_value(chance)
            else:
                holder.append(_odd_value(chance))
        elif chance.random() < 0.2:
            del holder[chance.choice(keys)]
        else:
            holder[chance.choice(keys)] = _odd_value(chance)
    return json.dumps(document).encode()


def _odd_value(chance: Random) -> Any:
    """Draw a value of its own: a later mutation may put another one into it."""
    return deepcopy(chance.choice(ODD_VALUES))


def _holders(document: Any) -> list[Any]:
    """All objects and lists in a document, those near the top several times."""
    found, pending = [], [document]
    while pending:
        holder = pending.pop()
        if isinstance(holder, dict | list):
            found.append(holder)
            pending += holder.values() if isinstance(holder, dict) else holder
    top = document.values() if isinstance(document, dict) else []
    return found + ([document] + [part for part in top if isinstance(part, dict | list)]) * 5
