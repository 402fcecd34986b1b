"""python -m tests.dst: runs of the deterministic simulation. See docs/simulation-under-faults.md."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and os.environ.get("PYTHONHASHSEED") != "0":
    # The order of sets of texts depends on it.
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-m", "tests.dst", *sys.argv[1:]])

from tests.dst import virtual

virtual.install()

from tests.dst.command import main  # noqa: E402

if __name__ == "__main__":
    main()
