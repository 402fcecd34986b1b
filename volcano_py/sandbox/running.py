"""The process that runs the sandbox of a kubeconfig: the state file beside it, locked by that process.

A process ID in a file may be that of a process that has ended, or of an unrelated new one. So the file is valid only
while its writer holds a lock (flock) on it, which the kernel releases when the process ends. If /proc contains the
start time of processes, it must be equal, too. Kubernetes has no counterpart.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

_ATTEMPTS, _PAUSE = 20, 0.05
"""How often, and with how many seconds in between, a lock is tried: readers hold it only briefly."""


@dataclass(slots=True)
class State:
    """A running sandbox. url: empty until its API server runs. started: the start time in /proc, empty without one."""

    pid: int
    url: str = ""
    nodes: int = 0
    started: str = ""


class AlreadyRunning(Exception):
    """Another process runs the sandbox of this kubeconfig."""

    def __init__(self, state: State | None) -> None:
        super().__init__("another process holds the lock")
        self.state = state


class Claim:
    """The locked state file of this process."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle

    def publish(self, url: str = "", nodes: int = 0) -> None:
        """Write the state for other processes. Raises OSError."""
        state = State(os.getpid(), url, nodes, _started(os.getpid()))
        data = orjson.dumps(asdict(state))
        os.pwrite(self._handle, data, 0)
        os.ftruncate(self._handle, len(data))

    def release(self) -> None:
        """Remove the file, if it exists, and release the lock."""
        if _is_at(self._handle, self._path):
            self._path.unlink(missing_ok=True)
        os.close(self._handle)


def claim(kubeconfig: Path) -> Claim:
    """Record this process as the sandbox of a kubeconfig. Raises AlreadyRunning; OSError if the file is not usable."""
    path = state_path(kubeconfig)
    path.parent.mkdir(parents=True, exist_ok=True)
    made = Claim(path, _locked(path))
    made.publish()
    return made


def find(kubeconfig: Path) -> State | None:
    """The running sandbox of a kubeconfig, None when there is none."""
    try:
        handle = os.open(state_path(kubeconfig), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None  # its writer has ended
    except BlockingIOError:
        return _read(handle)
    except OSError:  # a file system without locks: claim() fails there, so no sandbox uses it
        return None
    finally:
        os.close(handle)


def terminate(kubeconfig: Path) -> State | None:
    """Send SIGTERM to the sandbox of a kubeconfig; None when none runs. Raises PermissionError."""
    state = find(kubeconfig)
    if state is None:
        return None
    try:
        # the handle refers to one process, even when its ID is reused
        process = os.pidfd_open(state.pid) if hasattr(os, "pidfd_open") else None
    except ProcessLookupError:
        return None
    try:
        again = find(kubeconfig)
        if again is None or again.pid != state.pid:
            return None
        if process is None:
            os.kill(state.pid, signal.SIGTERM)
        else:
            signal.pidfd_send_signal(process, signal.SIGTERM)
    except ProcessLookupError:
        return None
    finally:
        if process is not None:
            os.close(process)
    return state


def state_path(kubeconfig: Path) -> Path:
    """The state file beside a kubeconfig."""
    return kubeconfig.with_name(kubeconfig.name + ".state")


def _locked(path: Path) -> int:
    """A handle of the file at a path, locked by this process."""
    for attempt in range(_ATTEMPTS):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                os.fchmod(handle, 0o600)
                return handle
        except BlockingIOError:
            if attempt == _ATTEMPTS - 1:
                state = _read(handle)
                os.close(handle)
                raise AlreadyRunning(state) from None
            time.sleep(_PAUSE)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
    raise AlreadyRunning(None)


def _is_at(handle: int, path: Path) -> bool:
    """Whether a file is still the one at its path: its former owner may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _read(handle: int) -> State | None:
    """The content of a state file; None if it is invalid, or another process wrote it."""
    try:
        raw = orjson.loads(os.pread(handle, 65536, 0))
        state = State(int(raw["pid"]), str(raw["url"]), int(raw["nodes"]), str(raw["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return state if state.started == _started(state.pid) else None


def _started(pid: int) -> str:
    """The start time of a process in /proc/<pid>/stat (field 22, in clock ticks since boot); empty without /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
