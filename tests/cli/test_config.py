"""`volcano-py config check | show | diff`, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from volcano_py.cli.config import config

GOOD = """\
actions: enqueue, allocate, backfill
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
CLEAN = GOOD.replace("]", ", {name: proportion}]")


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(config, arguments, input=stdin)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scheduler.conf"
    path.write_text(CLEAN)
    return path


def test_check(file: Path) -> None:
    assert (run("check", str(file)).exit_code, run("check", str(file)).output) == (0, "no problems found\n")
    odd = run("check", "-", stdin=GOOD)
    assert odd.exit_code == 0 and odd.output.startswith("hint:    neither proportion nor capacity")
    assert run("check", "--strict", "-", stdin=GOOD).exit_code == 1
    wrong = run("check", "-o", "json", "-", stdin="actions: alocate")
    assert wrong.exit_code == 1
    [finding] = json.loads(wrong.output)
    assert finding["severity"] == "error" and "did you mean allocate?" in finding["text"]


def test_check_of_profiles() -> None:
    kind = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    document = kind + "profiles: [{plugins: {x: {}}}]"
    found = run("check", "-", stdin=document)
    assert found.exit_code == 1 and "unknown point 'x'" in found.output
    shown = run("show", "-", stdin=document)
    assert shown.exit_code == 1 and "this command reads Volcano's configuration" in shown.output


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for path, text in ((tmp_path / "missing", "No such file"), (binary, "not UTF-8"), (tmp_path, "directory")):
        found = run("check", str(path))
        assert found.exit_code == 1 and text in found.output and "Traceback" not in found.output, found.output


def test_show(file: Path) -> None:
    assert "actions: enqueue, allocate, backfill" in run("show").output
    found = run("show", str(file))
    assert found.exit_code == 0 and "tiers[0].nodeorder\n" in found.output
    assert "leastrequested.weight" in found.output and "(file)" not in found.output
    values = json.loads(run("show", "-o", "json", str(file)).output)
    assert {"owner": "tiers[0].nodeorder", "name": "nodeaffinity.weight", "value": 2, "origin": "default"} in values


def test_diff(file: Path) -> None:
    assert (run("diff", str(file), str(file)).exit_code, run("diff", str(file), str(file)).output) == (
        0,
        "no differences\n",
    )
    found = run("diff", str(file), "-", stdin=GOOD)
    assert found.exit_code == 1
    assert found.output == "plugin proportion is removed (queues share the cluster by weight)\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty; a configuration has the keys actions and tiers"),
        ("# nothing\n", "it is empty"),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {}\n",
            "it is a Job of batch.volcano.sh/v1alpha1; this",
        ),
        (
            "kind: Pod\n",
            "it is a Pod; this command reads Volcano's configuration (actions, tiers), a ConfigMap with it",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "show"])
def test_a_file_that_is_no_configuration(text: str, problem: str, command: str) -> None:
    found = run(command, "-", stdin=text)
    assert found.exit_code == 1 and f"-: {problem}" in " ".join(found.output.split())


def test_an_unknown_disabled_plugin_does_not_fail(tmp_path: Path) -> None:
    kind = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    document = kind + "profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}]}}}]"
    found = run("check", "-", stdin=document)
    assert found.exit_code == 0
    words = " ".join(found.output.split())
    assert words == (
        "warning: profile default-scheduler, score: disabled plugin 'ImageLocalty' does not exist; "
        "did you mean ImageLocality?"
    )
