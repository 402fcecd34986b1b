"""Arguments of Volcano's chart and users that have no effect here are accepted."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from volcano_py.cli.vcctl import main as vcctl
from volcano_py.controllers.options import parse_flags
from volcano_py.kube.flags import REDIRECTION, without_klog_flags
from volcano_py.scheduler.runtime.command import scheduler


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-v", "3", "job", "list"], ["job", "list"]),
        (["job", "--v=4", "list", "--vmodule", "a=2"], ["job", "list"]),
        (["--log-flush-frequency=5s", "job", "-N", "x"], ["job", "-N", "x"]),
        (["job", "run", "--", "-v", "3"], ["job", "run", "--", "-v", "3"]),
    ],
)
def test_klog_flags_at_any_position(given: list[str], kept: list[str]) -> None:
    assert without_klog_flags(given) == kept


def test_vcctl_takes_volcanos_global_flags() -> None:
    assert (
        CliRunner().invoke(vcctl, ["version", "--v=3", "--vmodule", "x=1", "--log-flush-frequency", "5s"]).exit_code
        == 0
    )


def test_the_redirection_in_the_charts_arguments() -> None:
    assert parse_flags(["--worker-threads=7", REDIRECTION]).worker_threads == 7
    params = scheduler.make_context("scheduler", ["--scheduler-conf=x", "-v=3", REDIRECTION]).params
    assert params["scheduler_conf"] == "x"
    assert "extra argument (2>1)" in CliRunner().invoke(scheduler, ["2>1"]).output
