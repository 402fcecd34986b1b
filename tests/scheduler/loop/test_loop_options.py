"""The command line, the configuration file, the endpoints, the metrics: the modules around the loop."""

import os
import ssl
import textwrap
from itertools import pairwise

import aiohttp
import click
import pytest
from click.testing import CliRunner

from volcano_py.kube.flags import parse_gates
from volcano_py.kube.serve import serving, split_address, tls_context
from volcano_py.scheduler.actions import ACTIONS
from volcano_py.scheduler.configuration.extensions import ExtensionError, extended
from volcano_py.scheduler.configuration.options import Options
from volcano_py.scheduler.configuration.reload import ConfigurationFile
from volcano_py.scheduler.framework.config import ConfigurationError
from volcano_py.scheduler.plugins import PLUGINS
from volcano_py.scheduler.run_once import REGISTRY
from volcano_py.scheduler.runtime import command as module
from volcano_py.scheduler.runtime.metrics import Metrics, exponential


@pytest.fixture
def parse(monkeypatch):
    """Options of a command line; the scheduler itself is not run."""
    seen = []
    import volcano_py.scheduler.runtime.process as process

    monkeypatch.setattr(process, "main", lambda options: seen.append(options) or 0)

    def run(*arguments):
        result = CliRunner().invoke(module.scheduler, list(arguments))
        if result.exit_code:
            raise click.UsageError(result.output)
        return seen[-1]

    return run


def test_defaults_are_volcanos(parse):
    o = parse()
    assert o == Options()
    assert (o.schedule_period, o.kube_api_qps, o.kube_api_burst) == (1.0, 2000, 2000)
    assert (o.lease_duration, o.renew_deadline, o.retry_period) == (15, 10, 2)
    assert (o.lease_namespace, o.lease_name, o.leader_elect) == ("volcano-system", "volcano", True)
    assert not o.enable_healthz and not o.enable_metrics and o.priority_class


def test_the_arguments_of_volcanos_chart_are_accepted(parse):
    o = parse(
        "--logtostderr",
        "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
        "--enable-healthz=true",
        "--enable-metrics=true",
        "--leader-elect=false",
        "--kube-api-qps=2000",
        "--schedule-period=500ms",
        "--node-worker-threads=20",
        "--leader-elect-resource-namespace=volcano-system",
        "-v=3",
    )
    assert o.enable_healthz and o.enable_metrics and not o.leader_elect
    assert o.schedule_period == 0.5
    assert o.ignored == ("--logtostderr", "--node-worker-threads")


def test_repeated_and_listed_flags(parse):
    o = parse("--scheduler-name=a", "--scheduler-name=b", "--node-selector=x:1,y:2", "--node-selector=z:3")
    assert o.scheduler_names == ("a", "b") and o.component == "volcano"
    assert o.node_selector == ("x:1", "y:2", "z:3")
    assert parse("--scheduler-name=mine").component == "mine"
    assert parse("--lock-object-namespace=old").lease_namespace == "old"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schedule-period=1"], "invalid duration"),
        (["--schedule-period=0s"], "longer than 0"),
        (["--leader-elect-lease-duration=5s"], "lease duration > renew deadline"),
        (["--feature-gates=PriorityClass"], "Name=true or Name=false"),
        (["--scheduler-sharding-mode=some"], "hard"),
    ],
)
def test_errors_name_the_option(parse, arguments, message):
    with pytest.raises(click.UsageError, match=message):
        parse(*arguments)


def test_gates():
    assert parse_gates("A=true, B=FALSE,") == {"A": True, "B": False}


# ---- the configuration file

GOOD = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: gang\n'


def configuration(path, **options):
    return ConfigurationFile(str(path), ACTIONS, PLUGINS, **options)


def test_without_a_file_the_built_in_one_is_in_force():
    assert configuration("").configuration.actions == ("enqueue", "allocate", "backfill")
    with pytest.raises(ConfigurationError, match="disable-default"):
        configuration("", default=False)


def test_a_bad_file_at_the_start(tmp_path, caplog):
    file = tmp_path / "conf"
    file.write_text('actions: "alocate"')
    with pytest.raises(ConfigurationError, match=r"conf: actions: .*alocate.*did you mean allocate"):
        configuration(file)
    assert configuration(file, strict=False).configuration.actions == ("enqueue", "allocate", "backfill")
    assert len([r for r in caplog.records if r.levelname == "ERROR"]) == 1
    with pytest.raises(ConfigurationError):
        configuration(file, strict=False, default=False)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        configuration(tmp_path / "nothing")


def test_a_changed_file_is_read_again_and_a_bad_one_is_one_line(tmp_path, caplog):
    file = tmp_path / "conf"
    file.write_text(GOOD)
    conf = configuration(file)
    assert not conf.poll()
    file.write_text(GOOD.replace("allocate", "allocate, backfill"))
    assert conf.poll() and conf.configuration.actions == ("enqueue", "allocate", "backfill")
    caplog.clear()
    file.write_text("actions: [")
    assert not conf.poll() and not conf.poll()
    (record,) = [r for r in caplog.records if r.levelname == "ERROR"]
    assert str(file) in record.message and "line" in record.message
    assert conf.configuration.actions == ("enqueue", "allocate", "backfill")
    file.unlink()
    assert not conf.poll()
    file.write_text(GOOD)
    assert conf.poll() and conf.configuration.actions == ("enqueue", "allocate")


def test_the_swap_of_a_config_maps_symlinks_is_seen(tmp_path):
    for name, text in (("one", GOOD), ("two", GOOD.replace("enqueue, ", ""))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conf").write_text(text)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "conf").symlink_to("..data/conf")
    conf = configuration(tmp_path / "conf")
    (tmp_path / "new").symlink_to("two")
    os.replace(tmp_path / "new", tmp_path / "..data")
    assert conf.poll() and conf.configuration.actions == ("allocate",)


def test_an_unknown_plugin_is_a_warning_with_the_nearest_name(tmp_path, caplog):
    file = tmp_path / "conf"
    file.write_text(GOOD.replace("gang", "gnag"))
    configuration(file)
    assert "no plugin gnag, it is skipped; did you mean gang?" in caplog.text


# ---- custom plugins


def test_plugins_and_actions_of_a_folder(tmp_path):
    (tmp_path / "mine.py").write_text(
        textwrap.dedent(
            """
            from volcano_py.plugin import Action, Plugin, PluginArguments

            class Mine(Plugin):
                name = "mine"
                class Arguments(PluginArguments):
                    a: int = 0
                def on_session_open(self, session): pass

            class Tidy(Action):
                name = "tidy"
                def execute(self, session): pass

            class Base(Plugin):
                pass

            def helper(): pass
            """
        )
    )
    made = extended(REGISTRY, str(tmp_path))
    assert made.plugins["mine"]({"a": 1}).arguments.a == 1
    assert set(made.actions) - set(REGISTRY.actions) == {"tidy"}
    assert "mine" not in REGISTRY.plugins


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_that_name", "broken.py: ModuleNotFoundError"),
        ("from volcano_py.plugin import Plugin\nclass G(Plugin):\n  name = 'gang'", "gang is already registered"),
        (
            "class G:\n  name = 'g'\n  def on_session_open(self, s): pass",
            r"must be a subclass of volcano_py\.plugin\.Plugin",
        ),
    ],
)
def test_errors_name_the_plugin_file(tmp_path, text, message):
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(ExtensionError, match=message):
        extended(REGISTRY, str(tmp_path))


def test_errors_name_the_missing_plugins_folder(tmp_path):
    with pytest.raises(ExtensionError, match="is not a directory"):
        extended(REGISTRY, str(tmp_path / "x"))


# ---- endpoints


@pytest.mark.parametrize(
    ("text", "found"),
    [(":8080", ("", 8080)), ("127.0.0.1:1", ("127.0.0.1", 1)), ("[::1]:2", ("::1", 2))],
)
def test_addresses(text, found):
    assert split_address(text) == found


def test_bad_addresses():
    for text in ("8080", "host", "host:port"):
        with pytest.raises(ValueError, match="host:port"):
            split_address(text)


async def test_metrics_and_health_are_served():
    wrong = ""
    metrics = ("127.0.0.1:0", lambda: b"metric 1\n")
    async with (
        serving(metrics=metrics, healthz=("127.0.0.1:0", lambda: wrong)) as ports,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"http://127.0.0.1:{ports['metrics']}/metrics") as answer:
            assert await answer.text() == "metric 1\n" and "version=0.0.4" in answer.headers["Content-Type"]
        async with session.get(f"http://127.0.0.1:{ports['healthz']}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        wrong = "no dispatcher"
        async with session.get(f"http://127.0.0.1:{ports['healthz']}/healthz") as answer:
            assert (answer.status, await answer.text()) == (500, "no dispatcher")


async def test_nothing_is_served_by_default():
    async with serving() as ports:
        assert ports == {}
    assert tls_context("ca", "", "key") is None
    with pytest.raises((OSError, ssl.SSLError)):
        tls_context("/nothing", "/nothing", "/nothing")


# ---- metrics


def test_buckets_are_exponential():
    bounds = exponential(1, 5000, 20)
    assert len(bounds) == 20 and bounds[0] == 1 and bounds[-1] == 5000
    ratios = [b / a for a, b in pairwise(bounds)]
    assert max(ratios) - min(ratios) < 1e-9


def test_gauges_of_plugins_are_added_and_removed():
    metrics = Metrics()

    def report(*gauges):
        metrics._take_gauges(gauges)
        lines = metrics.expose().decode().splitlines()
        return {line for line in lines if line.startswith(("volcano_queue", "volcano_job_share"))}

    gpu = ("queue_allocated_scalar_resources", {"queue_name": "q", "resource": "gpu"}, 8.0)
    share = ("queue_share", {"queue_name": "q"}, 0.5)
    job = ("job_share", {"job_ns": "ns", "job_id": "j"}, 0.25)
    assert report(gpu, share, job) == {
        'volcano_queue_allocated_scalar_resources{queue_name="q",resource="gpu"} 8.0',
        'volcano_queue_share{queue_name="q"} 0.5',
        'volcano_job_share{job_id="j",job_ns="ns"} 0.25',
    }
    assert report(share) == {
        'volcano_queue_allocated_scalar_resources{queue_name="q",resource="gpu"} 0.0',
        'volcano_queue_share{queue_name="q"} 0.5',
    }, "the series of a resource stays at 0; those of a deleted job are removed"
    assert report() == set(), "the series of a deleted queue are removed"


def test_names_are_volcanos():
    text = Metrics().expose().decode()
    for name in (
        "volcano_e2e_scheduling_latency_milliseconds",
        "volcano_e2e_job_scheduling_latency_milliseconds",
        "volcano_plugin_scheduling_latency_milliseconds",
        "volcano_action_scheduling_latency_milliseconds",
        "volcano_task_scheduling_latency_milliseconds",
        "volcano_e2e_job_scheduling_duration",
        "volcano_job_retry_counts",
        "volcano_schedule_attempts_total",
        "volcano_eviction_transactions_total",
    ):
        assert f"# TYPE {name} " in text, name
