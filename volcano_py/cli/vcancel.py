"""`vcancel` deletes a job. Volcano: vcancel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from volcano_py.cli import job_commands

if TYPE_CHECKING:
    from volcano_py.kube.client import Client


async def cancel(client: Client, namespace: str, name: str, wait: bool, timeout: float) -> None:
    """Delete a job."""
    await job_commands.delete(client, namespace, name, f"cancel job {name} successfully", wait, timeout)


main = job_commands.job_tool("vcancel", "Delete a job.", "Wait until the job and its pods are deleted.", cancel)

if __name__ == "__main__":
    main(prog_name="vcancel")
