"""A component that ends with its sandbox, whichever way that goes: `python -m volcano_py.sandbox.lifeline scheduler …`.

The sandbox holds the other end of our standard input. When that closes the sandbox is gone, kill -9 included; without
this a scheduler would go on and meet the next sandbox on the same port.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading
import time

GRACE_SECONDS = 5.0


def end_with_parent() -> None:
    """Ask this process to end when standard input does, and insist after a while."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def main() -> None:
    """Run `volcano-py` with our arguments."""
    end_with_parent()
    runpy.run_module("volcano_py.cli.main", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
