"""The logs of processes: `<pod>/logs/<container>/<attempt>.log`, for the latest two runs of each container.

Kubernetes: the kubelet's container log files.
"""

from __future__ import annotations

from pathlib import Path


def path_for(pod: Path, container: str) -> Path:
    """Create the empty file of a container's next run; files before the latest run's are removed.

    It exists before the container's status is "running". Otherwise a client that then reads the log would get that of
    the previous run, or none, before the supervisor has opened it. Raises OSError.
    """
    folder = pod / "logs" / container
    folder.mkdir(parents=True, exist_ok=True)
    there = attempts(folder)
    for number in there[:-1]:
        for path in (folder / f"{number}.log", folder / f"{number}.log.1"):
            path.unlink(missing_ok=True)
    path = folder / f"{there[-1] + 1 if there else 0}.log"
    path.touch()
    return path


def attempts(folder: Path) -> list[int]:
    """Numbers of the runs with logs, in order."""
    try:
        return sorted(int(path.stem) for path in folder.glob("*.log") if path.stem.isdigit())
    except OSError:
        return []


def find(pod: Path, container: str, index: int) -> Path | None:
    """The file of the latest run (-1) or of the one before (-2)."""
    folder = pod / "logs" / container
    there = attempts(folder)
    return folder / f"{there[index]}.log" if len(there) >= -index else None
