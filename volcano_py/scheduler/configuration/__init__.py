"""Where the scheduler's configuration comes from, and its reload."""
