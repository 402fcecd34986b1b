"""`vresume` resumes an aborted job. Volcano: vresume."""

from __future__ import annotations

from volcano_py.cli import job_commands

main = job_commands.job_tool("vresume", "Resume an aborted job.", "Wait until the job is Running.", job_commands.resume)

if __name__ == "__main__":
    main(prog_name="vresume")
