"""The program that starts containers' processes, collects their output, and leaves none behind.

`python -m volcano_py.sandbox.kubelet.processes.supervisor` reads commands as lines of JSON from its standard input and
writes events to its standard output. It is a separate process because forking a small program is fast (the sandbox
itself may use a gigabyte), and because it detects the end of the sandbox, also by kill -9, as the end of its input:
then it kills all processes that it started, and their children. If it is killed itself, Linux kills its children.

Commands: {"op": "run", id, argv, cwd, env, log (or null), limits: {"data", "cpu", "cores"}},
and {"op": "signal", id, signal}.
Events: {"event": "started", id, pid}, {"event": "failed", id, message}, {"event": "ended", id, code}.
It imports nothing of the package, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARKER = "SANDBOX_CONTAINER"  # an environment variable that identifies a process without its parents
LOG_LIMIT = 10 << 20  # bytes of a log before it becomes <name>.1; as the kubelet's containerLogMaxSize
LINE_LIMIT = 64 << 10  # bytes of a line before it is split
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class Log:
    """A file of lines, each with the time when it was read as a prefix."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115 - closed with the run
        self._size = 0
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Write the complete lines, keep the rest."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        while len(self._rest) > LINE_LIMIT:
            lines.append(self._rest[:LINE_LIMIT])
            self._rest = self._rest[LINE_LIMIT:]
        if lines:
            now = _stamp()
            self._write(b"".join(now + line + b"\n" for line in lines))

    def close(self) -> None:
        if self._rest:
            self._write(_stamp() + self._rest)
        self._file.close()

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # on a full disk the log is lost, and the process continues
            if self._size + len(data) > LOG_LIMIT and self._size:
                self._file.close()
                os.replace(self.path, self.path + ".1")
                self._file = open(self.path, "wb", buffering=0)  # noqa: SIM115
                self._size = 0
            self._file.write(data)
            self._size += len(data)


def _stamp() -> bytes:
    nanoseconds = time.time_ns()
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(nanoseconds // 10**9))
    return f"{whole}.{nanoseconds % 10**9 // 1000:06d}Z ".encode()


class Run:
    """One process with its descendants."""

    def __init__(self, id_: str, process: subprocess.Popen[bytes], log: Log | None) -> None:
        self.id = id_
        self.process = process
        self.log = log

    def read(self) -> bool | None:
        """Read the output; None when there is nothing now, False at its end."""
        assert self.process.stdout is not None
        try:
            data = os.read(self.process.stdout.fileno(), 65536)
        except BlockingIOError:
            return None
        if data and self.log is not None:
            self.log.feed(data)
        return bool(data)

    def kill(self, number: int) -> None:
        """Signal the process and its group; its ID is reserved until this program waits for it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class Supervisor:
    """All runs, one loop."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}
        self.by_pid: dict[int, Run] = {}
        self.selector = selectors.DefaultSelector()
        self._input = b""

    def loop(self) -> None:
        """Serve until the sandbox ends."""
        wake, woken = os.pipe()
        for end in (wake, woken, 0):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        self.selector.register(wake, selectors.EVENT_READ, "wake")
        self.selector.register(0, selectors.EVENT_READ, "commands")
        while True:
            for key, _ in self.selector.select():
                if key.data == "commands":
                    if not self._commands():
                        return
                elif key.data == "wake":
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                elif key.data.read() is False:
                    self.selector.unregister(key.fileobj)
            self._reap()

    def end_all(self) -> None:
        """Kill all started processes and their descendants."""
        for run in self.runs.values():
            run.kill(signal.SIGKILL)
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(0.005)

    def _commands(self) -> bool:
        try:
            data = os.read(0, 1 << 20)
        except BlockingIOError:
            return True
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            command = json.loads(line)
            if command["op"] == "run":
                self._start(command)
            elif command["id"] in self.runs:
                self.runs[command["id"]].kill(command["signal"])
        return bool(data)

    def _start(self, command: dict[str, Any]) -> None:
        log = None
        try:
            # first the log: a deleted pod has no folder for it
            log = Log(command["log"]) if command["log"] else None
            process = subprocess.Popen(
                command["argv"],
                cwd=command["cwd"],
                env={**command["env"], MARKER: command["id"]},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_preparation(command["limits"]),
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            if log is not None:
                log.close()
            _report("failed", command["id"], message=_why(error, command))
            return
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        run = Run(command["id"], process, log)
        self.runs[run.id] = self.by_pid[process.pid] = run
        self.selector.register(process.stdout, selectors.EVENT_READ, run)
        _report("started", run.id, pid=process.pid)

    def _reap(self) -> None:
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            run = self.by_pid.pop(found.si_pid, None)
            if run is not None:
                run.kill(signal.SIGKILL)  # as in a container, all processes end with the first
            _, status = os.waitpid(found.si_pid, 0)
            if run is not None:
                self._end(run, status)

    def _end(self, run: Run, status: int) -> None:
        del self.runs[run.id]
        _kill_strays(run.id)
        stdout = run.process.stdout
        assert stdout is not None
        run.process.returncode = code = os.waitstatus_to_exitcode(status)
        while run.read():
            pass
        if stdout in self.selector.get_map():
            self.selector.unregister(stdout)
        stdout.close()
        if run.log is not None:
            run.log.close()
        _report("ended", run.id, code=code if code >= 0 else 128 - code)


def _kill_strays(id_: str) -> None:
    """Kill a run's processes in other sessions: reparented to this process, with the run's ID in their environment."""
    wanted = f"{MARKER}={id_}".encode()
    for _ in range(100):
        strays = [pid for pid in _children() if wanted in _environment(pid)]
        if not strays:
            return
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:  # not Linux: orphans are not reparented to this process
        return []


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _preparation(limits: dict[str, Any]) -> Callable[[], None]:
    """The steps of a process between fork and exec."""
    parent = os.getpid()
    rows = []
    if limits.get("cpu"):
        rows.append((resource.RLIMIT_CPU, int(limits["cpu"])))
    if limits.get("data"):
        rows.append((resource.RLIMIT_DATA, int(limits["data"])))
    cores = limits.get("cores")

    def prepare() -> None:
        if _PRCTL is not None:
            _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(137)
        if cores and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)
        for which, amount in rows:
            hard = resource.getrlimit(which)[1]
            allowed = amount if hard == resource.RLIM_INFINITY else min(amount, hard)
            resource.setrlimit(which, (allowed, allowed))

    return prepare


def _why(error: Exception, command: dict[str, Any]) -> str:
    program = command["argv"][0]
    if isinstance(error, FileNotFoundError) and "/" not in program:
        return f'exec: "{program}": executable file not found in $PATH'
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f'exec: "{program}": {text.lower()}'


def _report(event: str, id_: str, **more: Any) -> None:
    line = json.dumps({"event": event, "id": id_, **more}).encode() + b"\n"
    while line:
        line = line[os.write(1, line) :]


def _prctl() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return ctypes.CDLL(None).prctl


_PRCTL = _prctl()


def main() -> None:
    """Supervise until standard input ends."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if _PRCTL is not None:
        _PRCTL(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    supervisor = Supervisor()
    try:
        supervisor.loop()
    except BrokenPipeError:  # the sandbox ended during the write
        pass
    finally:
        supervisor.end_all()


if __name__ == "__main__":
    main()
