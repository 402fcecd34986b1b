"""The two other sources of input: hypothesis, and atheris where it is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.run import Summary, folder_name, note, one
from tests.fuzz.target import Target

_EXAMPLES = 200

_texts = st.text(max_size=30)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | _texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)


def hypothesis_round(target: Target, seconds: float, summary: Summary) -> None:
    """Rounds of new examples for so long: documents, or bytes and texts."""
    documents = _values.map(lambda value: orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
    data = documents | _texts.map(str.encode) if target.form == "bytes" else documents
    data = data | st.binary(max_size=80)

    @settings(max_examples=_EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(data)
    def round_of(drawn: bytes) -> None:
        note(summary, drawn, one(target, drawn))

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        round_of()


def atheris_one(targets: Mapping[str, Target], minutes: float) -> int:
    """Each target in a process of its own: atheris ends its process. 1 if one has a fault."""
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed; install it: .venv/bin/python -m pip install atheris", file=sys.stderr)
        return 2
    seconds = max(2, int(60 * minutes / len(targets)))
    failed = []
    for name, target in targets.items():
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            seeds = Path(folder) / "seeds"
            seeds.mkdir()
            for number, data in enumerate(target.seeds):
                (seeds / str(number)).write_bytes(data)
            crash = Path(folder) / f"{folder_name(name)}-"
            command = [sys.executable, "-m", "tests.fuzz.guided", name, f"-max_total_time={seconds}", "-timeout=10"]
            command += [f"-artifact_prefix={crash}", "-rss_limit_mb=4096", str(seeds)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            runs = [line for line in done.stderr.splitlines() if "runs in" in line or line.startswith("Done")]
            print(f"{name}: exit code {done.returncode}; {' '.join(runs[-1:])}", flush=True)
            if done.returncode:
                failed.append(name)
                print(done.stderr[-3000:])
                for path in Path(folder).glob(f"{folder_name(name)}-*"):
                    print(f"input: {path.read_bytes()[:400]!r}")
    print(f"{len(targets)} targets, {len(failed)} with faults: {', '.join(failed) or 'none'}")
    return 1 if failed else 0
