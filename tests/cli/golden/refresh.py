"""Renew the transcripts of the command line: ``python tests/cli/golden/refresh.py [NAME ...]``, all by default.

To add a case, write its ``$ `` line into a transcript and run this. Outputs that only differ within the
tolerances stay as they are. The tests hold the command line to these files: read the difference before keeping it.
"""

import sys
import tempfile
from pathlib import Path

from golden_transcripts import TRANSCRIPTS, read, replay, with_numbers_of


def refresh(path: Path) -> bool:
    """Run a transcript and write it anew; return whether it changed."""
    before = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            f"$ {command}\n{with_numbers_of(old, now)}\n"
            for command, old, now in replay(path, Path(folder).resolve())
        ]
    text = read(path)[0] + "\n".join(parts)
    path.write_text(text, encoding="utf-8")
    return text != before


if __name__ == "__main__":
    for transcript in TRANSCRIPTS:
        if not sys.argv[1:] or transcript.stem in sys.argv[1:]:
            print(f"{transcript.stem}: {'changed' if refresh(transcript) else 'as before'}", flush=True)
