"""Which process runs a sandbox, and files that only their owner may read."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from tests.sandbox.clients import CONFIGMAPS, http
from volcano_py.sandbox import kubeconfig, private_files, running
from volcano_py.sandbox.cluster import Sandbox
from volcano_py.sandbox.options import sandbox as program

HOLDER = """
import sys, time
from pathlib import Path
from volcano_py.sandbox import running
claim = running.claim(Path(sys.argv[1]))
claim.publish("https://127.0.0.1:1", 3)
print("up", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with a sandbox."""
    script = "import time; print('up', flush=True); time.sleep(600)"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    yield process
    process.kill()
    process.wait()


def holder(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"up\n"
    return process


def down(path: Path) -> tuple[int, str]:
    result = CliRunner().invoke(program, ["down", "--kubeconfig", str(path)])
    return result.exit_code, result.output


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_stale_state_file_stops_no_other_process(path: Path, other: subprocess.Popen[bytes]) -> None:
    """The number in it is that of another process by now."""
    state = {"pid": other.pid, "url": "https://127.0.0.1:1", "nodes": 3, "started": running._started(other.pid)}
    running.state_path(path).write_bytes(orjson.dumps(state))
    assert down(path) == (1, f"sandbox: no sandbox is running with {path}; start one with `volcano-py sandbox up`\n")
    assert other.poll() is None
    assert CliRunner().invoke(program, ["status", "--kubeconfig", str(path)]).exit_code == 1


def test_a_locked_file_with_the_number_of_another_process_stops_none(
    path: Path, other: subprocess.Popen[bytes]
) -> None:
    """As a container sees it whose process numbers are its own."""
    process = holder(path)
    state = orjson.loads(running.state_path(path).read_bytes())
    running.state_path(path).write_bytes(orjson.dumps({**state, "pid": other.pid}))
    assert down(path)[0] == 1
    assert other.poll() is None and process.poll() is None
    process.kill()
    process.wait()


def test_the_process_that_holds_the_file_is_stopped(path: Path) -> None:
    process = holder(path)
    assert running.find(path) == running.State(process.pid, "https://127.0.0.1:1", 3, running._started(process.pid))
    assert mode(running.state_path(path)) == 0o600
    with pytest.raises(running.AlreadyRunning) as caught:
        running.claim(path)
    assert caught.value.state is not None and caught.value.state.pid == process.pid
    assert down(path) == (0, "The sandbox is down.\n")
    assert process.wait() == -signal.SIGTERM
    # killed, it left its file behind: no process holds it
    assert running.state_path(path).exists() and running.find(path) is None
    claim = running.claim(path)
    assert running.find(path) is not None
    claim.release()
    assert not running.state_path(path).exists()


def test_a_state_file_that_is_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    running.state_path(path).symlink_to(target)
    with pytest.raises(OSError, match="symbolic link"):
        running.claim(path)
    assert target.read_text() == "precious"


def test_a_kubeconfig_replaces_links_and_open_files(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    path.symlink_to(target)
    kubeconfig.write(path, "https://127.0.0.1:1", b"authority", "secret-token")
    assert target.read_text() == "precious" and not path.is_symlink()
    assert mode(path) == 0o600 and "secret-token" in path.read_text()
    path.chmod(0o644)
    reader = path.open()  # opened while others could read it: it must not see the next token
    kubeconfig.write(path, "https://127.0.0.1:1", b"authority", "next-token")
    assert mode(path) == 0o600 and "next-token" in path.read_text()
    assert "next-token" not in reader.read()
    reader.close()
    assert sorted(os.listdir(tmp_path)) == ["kubeconfig", "target"]


def test_a_file_that_cannot_be_completed_leaves_the_old_one(path: Path, tmp_path: Path) -> None:
    path.write_text("old")
    with pytest.raises(ValueError, match="halfway"), private_files.replacing(path) as file:
        file.write("new")
        raise ValueError("halfway")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["kubeconfig"]


def test_a_device_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with private_files.replacing(pipe) as file:
        file.write("text")
    assert os.read(reader, 100) == b"text" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)


async def test_dumps_and_the_audit_log_are_their_owners_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        audit, dumped = tmp_path / "audit", tmp_path / "all.json"
        async with Sandbox(nodes=0, path=tmp_path / "kubeconfig", audit=audit) as sandbox, http(sandbox) as api:
            await api.ok("GET", CONFIGMAPS)
            arguments = ["dump", "-o", str(dumped), "--kubeconfig", sandbox.kubeconfig]
            process = subprocess.Popen([sys.executable, "-m", "volcano_py.cli.main", "sandbox", *arguments])
            assert await asyncio.to_thread(process.wait) == 0
        assert mode(audit) == mode(dumped) == 0o600
    finally:
        os.umask(umask)
