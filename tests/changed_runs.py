"""Runs as they may come from elsewhere: changed, with nothing in them that tells of it."""

import json


def without_digests(run):
    """Take the digests out of a run, as older versions wrote none, so that what is behind them is tested."""
    result = json.loads((run / "result.json").read_text())
    result.pop("digests", None)
    (run / "result.json").write_text(json.dumps(result))
    return run
