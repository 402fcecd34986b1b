"""A child process that ends with its sandbox: `python -m volcano_py.sandbox.lifeline MODULE ARGUMENTS…`.

The sandbox holds the other end of the child's standard input. It is closed when the sandbox ends, also by kill -9;
otherwise a scheduler would continue and connect to the next sandbox on the same port.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time

GRACE_SECONDS = 5.0


def end_with_parent() -> None:
    """Terminate this process when standard input is closed, and kill it if it still runs after `GRACE_SECONDS`."""

    def wait() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE_SECONDS)
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def main() -> None:
    """Run the module of the first argument with the remaining arguments."""
    end_with_parent()
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
