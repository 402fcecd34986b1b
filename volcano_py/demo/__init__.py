"""The demo: jobs on an embedded cluster, with a live view and a summary."""
