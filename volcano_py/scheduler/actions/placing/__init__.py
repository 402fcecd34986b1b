"""How allocate places the tasks of a job: runs, arrangements and sub-jobs."""
