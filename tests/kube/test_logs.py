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


def test_a_text_of_an_object_cannot_write_lines_or_reach_the_terminal() -> None:
    text = "pod a\\n2026-01-01 00:00:00,000 ERROR scheduler: forged\\r\\x1b[2J\\x9b\\u2028end"
    raised = "try:\n    raise ValueError('first\\x1b[2J\\nforged')\nexcept ValueError:\n    log.exception('failed')"
    program = (
        "import logging; from volcano_py.kube import logs; logs.configure('x'); log = logging.getLogger('a')\n"
        f"log.warning('%s', '{text}')\n{raised}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    first, *others = done.stderr.decode().splitlines()
    assert first.endswith(r"\u000a2026-01-01 00:00:00,000 ERROR scheduler: forged\u000d\u001b[2J\u009b\u2028end")
    assert others[0].endswith("ERROR x: failed") and others[1].startswith("  Traceback")
    assert others[-2:] == [r"  ValueError: first\u001b[2J", "  forged"]
