"""All components log in one format."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import volcano_py
from volcano_py.kube import logs

PACKAGE = Path(volcano_py.__file__).parent


def test_no_component_has_a_format_of_its_own() -> None:
    own = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"basicConfig\(", path.read_text()) and path != Path(logs.__file__)
    ]
    assert own == []


def test_the_format() -> None:
    log = "logging.getLogger('a.b').warning('text')"
    program = f"import logging; from volcano_py.kube import logs; logs.configure('x'); {log}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING x: text\n", done.stderr)
