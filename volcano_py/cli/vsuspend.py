"""`vsuspend` aborts a job, which can be resumed. Volcano: vsuspend."""

from __future__ import annotations

from volcano_py.cli import job_commands

main = job_commands.job_tool(
    "vsuspend", "Abort a job; it can be resumed.", "Wait until the job is Aborted.", job_commands.suspend
)

if __name__ == "__main__":
    main(prog_name="vsuspend")
