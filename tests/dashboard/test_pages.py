"""The dashboard over HTTP: every page answers, rights and tokens hold, and the command's errors are one sentence."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest
from click.testing import CliRunner

from tests import waiting
from tests.dashboard.serving import serving
from volcano_py.api.kinds import COMPOSITE_PODGROUP, NATIVE_PODGROUP_BETA, PODGROUP, QUEUE, RESERVATION
from volcano_py.api.meta import format_time
from volcano_py.cli.main import main
from volcano_py.dashboard import command, tokens
from volcano_py.kube.client import Client
from volcano_py.sandbox import volcano
from volcano_py.sandbox.cluster import Sandbox

EVIL = '"><script>alert(1)</script>'
WAITING = {"type": "Waiting", "status": "True", "reason": "NodeResources", "message": f"2 nodes {EVIL} are full"}


async def fill(client: Client) -> None:
    await client.create(QUEUE, {"metadata": {"name": "vision"}, "spec": {"weight": 3}})
    for name in ("train", "evaluate"):
        await client.create(
            PODGROUP,
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"queue": "vision", "minMember": 4},
                "status": {"phase": "Inqueue", "conditions": [WAITING]},
            },
        )
    owners = [{"queue": "vision"}]
    begins = format_time(time.time() + 3600)
    spec = {"startTime": begins, "duration": "2h", "nodes": ["node-0"], "owners": owners}
    await client.create(RESERVATION, {"metadata": {"name": "exam"}, "spec": spec})
    reference = {"workloadName": "w", "templateName": "t"}
    spec = {"workloadRef": reference, "schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    await client.create(COMPOSITE_PODGROUP, {"metadata": {"name": "tree", "namespace": "default"}, "spec": spec})
    spec = {"workloadRef": reference, "schedulingPolicy": {"gang": {"minCount": 7}}}
    spec["parentCompositePodGroupName"] = "tree"
    await client.create(NATIVE_PODGROUP_BETA, {"metadata": {"name": "leaf", "namespace": "default"}, "spec": spec})


async def test_every_page_answers_with_what_the_cluster_has_to_those_who_have_the_token(tmp_path: Path) -> None:
    async with (
        Sandbox(
            3,
            path=tmp_path / "kubeconfig",
            controllers=None,
            hollow=False,
            volcano_admission=False,
            feature_gates="AllAlpha=true",
            kubernetes_version="1.37",
        ) as sandbox,
        Client.from_kubeconfig(sandbox.kubeconfig) as client,
    ):
        waiting.observe(sandbox)
        await fill(client)
        jar = aiohttp.CookieJar(unsafe=True)  # a cookie of an IP address
        async with (
            serving(sandbox.kubeconfig, "--host=0.0.0.0") as served,
            aiohttp.ClientSession(cookie_jar=jar) as session,
        ):
            token = urlsplit(served.address).query
            own = f"http://127.0.0.1:{urlsplit(served.address).port}"

            async def page(path: str, status: int = 200) -> str:
                async with session.get(own + path) as answer:
                    assert answer.status == status, path
                    return await answer.text()

            assert "requires a token" in await page("/", 401)
            async with session.get(f"{own}/jobs?{token}") as answer:
                assert (answer.status, answer.url.path, answer.url.query_string) == (200, "/jobs", "")

            assert "vision" in await page("/")
            text = await page("/jobs")
            assert "train" in text and "evaluate" in text
            assert "<script>alert(1)" not in text
            assert "train" in await page("/jobs?queue=vision&text=train&order=no&state=no")
            assert "evaluate" not in re.sub(r"history|evaluated", "", await page("/jobs?text=train"))
            assert "Why it waits" in await page("/jobs/default/train")
            groups = f"/jobs/default/compositepodgroup.{COMPOSITE_PODGROUP.group}/tree"
            assert groups in text
            assert "0 of 7 pods, 0 exist" in await page(groups)
            missing = await page("/jobs/default/none")
            assert "does not exist" in missing and not re.search("Timeline|>Pods", missing)
            assert "Timeline" in await page("/jobs/default/train")
            for path in ("/nosuch", "/jobs/default", f"/{EVIL}"):
                lost = await page(path, 404)
                assert "There is no page " in lost and "<script>alert(1)" not in lost
                assert all(name in lost for name in ("Queues", "Evictions", "Cycles"))
            async with session.get(f"{own}/_nicegui/nosuch") as answer:
                assert answer.status == 404 and "There is no page" not in await answer.text()
            assert "node-0" in await page("/nodes")
            assert "No pods run here" in await page("/nodes/node-0")
            assert "does not exist" in await page("/queues/none")
            assert "No pod was evicted" in await page("/evictions")
            text = await page("/reservations")
            assert "exam" in text and "queue vision" in text and "exam: a Reservation, from" in text
            assert "volcano-scheduler-history does not exist; the scheduler writes it" in await page("/shares")
            assert "--metrics" in await page("/cycles")
            sources = re.findall(r"(?:src|href)=\\?\"([^\"\\]+)", text)
            assert sources and not [s for s in sources if re.match(r"https?:|//", s)]
            async with session.get(own, headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403
            async with session.get(own, headers={"Origin": "http://evil.example"}) as answer:
                assert answer.status == 403


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["dashboard", *arguments])
    return result.exit_code, result.output


def test_without_the_extra_the_command_names_the_one_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.importlib.util, "find_spec", lambda name: None)
    code, text = run()
    assert code == 2 and "pip install 'volcano-py[dashboard]'" in text
    with pytest.raises(ValueError, match="pip install"):
        volcano.dashboard_arguments(8090)


def test_an_address_that_is_taken_and_a_short_token_are_errors(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, text = run(f"--port={taken.getsockname()[1]}")
        assert code == 2 and "choose another with --host or --port" in text
    short = tmp_path / "token"
    short.write_text("secret\n")
    code, text = run(f"--token-file={short}")
    assert code == 2 and "at least 16 characters" in text


def test_a_kubeconfig_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    code, text = run("--port=0", f"--kubeconfig={tmp_path}/none")
    assert code == 255 and "does not exist" in text


def test_the_sandbox_gives_the_dashboard_the_metrics_of_its_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volcano, "has_dashboard", lambda: True)
    arguments = volcano.dashboard_arguments(8090)
    [address] = [a.removeprefix("--listen-address=") for a in arguments["scheduler"] if "listen" in a]
    made = volcano.component_command(volcano.DASHBOARD, Path("kubeconfig"), arguments)
    assert made[1:4] == ["dashboard", "--kubeconfig", "kubeconfig"]
    assert made[4:] == ["--nice=10", "--port=8090", f"--metrics=http://{address}/metrics"]
    private = volcano.dashboard_arguments(8090, Path("token"))
    assert private[volcano.DASHBOARD][-1] == "--token-file=token"


def test_no_token_only_where_only_this_machine_can_connect(tmp_path: Path) -> None:
    for more in (["--host=0.0.0.0"], [f"--token-file={__file__}"]):
        code, text = run("--port=0", "--no-token", *more)
        assert code == 2 and "--no-token goes with a loopback address" in text


def test_the_token_of_a_loopback_address_is_in_a_file_that_only_the_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    other = tmp_path / "elsewhere"
    (tmp_path / "volcano-py").mkdir()
    (tmp_path / "volcano-py" / "dashboard-8090.token").symlink_to(other)
    token = tokens.new()
    with tokens.written(8090, token) as path:
        assert path.read_text() == f"{token}\n" and path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700 and not path.is_symlink() and not other.exists()
    assert not path.exists() and len(token) >= 24 and tokens.new() != token
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tokens.folder() == tmp_path / ".local/share/volcano-py/runtime"


def test_a_token_is_required_on_a_loopback_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("127.0.0.1", "localhost", "0.0.0.0"):
        assert len(command._token(host, None, False)) >= 24
    assert command._token("127.0.0.1", None, True) == ""
