"""A Python process that gets SIGINT while it works, as from Ctrl-C in a terminal."""

import json
import os
import signal
import subprocess
import sys
import threading
import time


def interrupted(program, *arguments, after=0.5, group=False):
    """Run a program, send it SIGINT some seconds after its line ``ready``, and return what it prints then.

    Parameters
    ----------
    program, arguments
        Python code, and what it finds in ``sys.argv``. It prints one line of JSON in the end.
    after
        Seconds between its line ``ready`` and the signal.
    group
        Whether its children get the signal too.

    Returns
    -------
    What it printed, and the seconds from the signal to that.
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    guard = threading.Timer(240.0, process.kill)
    guard.start()
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(after)
        if group:
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        began = time.monotonic()
        printed = process.stdout.readline()
        seconds = time.monotonic() - began
    finally:
        guard.cancel()
        process.kill()
        process.wait()
    return json.loads(printed), seconds
