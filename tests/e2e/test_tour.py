"""The README's tour, line by line, as a newcomer would type it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import waiting
from tests.kubectl import find

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
STEPS = re.findall(r"^<!-- tour -->\n```sh\n(.*?)^```", README, re.M | re.S)

PROMISED = (
    ("up at https://127.0.0.1:", "node-3   Ready"),
    ("job.batch.volcano.sh/hello condition met", "Running", "small                    1       Open    root"),
    (
        "run job wide successfully",
        "Job default/wide is pending: ",
        "add 1 node like node-0",
        "wide condition met",
    ),
    ("Aborted     Batch", "wide-default0-5", "6/6 Running"),
    (
        "waits (1)",
        "default/more: The cluster admits no more jobs",
        "starts (1)",
        "default/more: cycle 1",
        "sandbox is down",
    ),
    (
        "configmap/volcano-scheduler-configmap replaced",
        "run job pack successfully",
        "configmap/volcano-scheduler-configmap edited",
        'failed to find Action "alocate"; did you mean allocate?',
        "the configuration in force is kept",
    ),
)
"""Words that each step shows; `n/n Running`: so many pods do."""


def test_the_tour_is_there_and_its_promises_are_complete() -> None:
    assert len(STEPS) == len(PROMISED)


@pytest.mark.slow
def test_every_line_of_the_tour_runs_and_shows_what_it_promises(tmp_path: Path) -> None:
    kubectl = find()
    assert kubectl, "no kubectl: install it, or make setup"
    script = "set -e -o pipefail\n" + "".join(f"echo '@@@ {i}'\n{step}" for i, step in enumerate(STEPS))
    programs = (str(Path(sys.executable).parent), str(Path(kubectl).parent), os.environ["PATH"])
    environment = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
    environment |= {
        "PATH": os.pathsep.join(programs),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
        "KUBECACHEDIR": str(tmp_path / "cache"),
    }
    log = tmp_path / "tour.out"
    with log.open("wb") as output:
        # A session of its own: what the tour leaves running when a step fails is ended with it.
        shell = subprocess.Popen(
            ["bash", "-c", script],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
            env=environment,
            start_new_session=True,
        )
        try:
            code = shell.wait(waiting.budget(6))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGTERM)
    shown = re.split(r"^@@@ \d+\n", log.read_text(), flags=re.M)[1:]
    assert code == 0, f"step {len(shown)} failed:\n{shown[-1]}"
    for step, (text, promises) in enumerate(zip(shown, PROMISED, strict=True), 1):
        for promised in promises:
            if promised == "6/6 Running":
                assert len(re.findall(r"1/1 +Running", text)) == 6, text
            else:
                assert promised in text, f"step {step} does not show {promised!r}:\n{text}"
    nodes = dict(re.findall(r"^(\S+-default0-\d)\s.*?(node-\d)", shown[-1], re.M))
    assert len({nodes[f"spread-default0-{i}"] for i in range(3)}) == 3, shown[-1]
    assert len({nodes[f"pack-default0-{i}"] for i in range(3)}) == 1, shown[-1]
    assert not list(tmp_path.glob("**/kubeconfig.state")), "the last sandbox is down"


def test_files_that_the_readme_names_exist() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), f"README.md links to {target}, which does not exist"
