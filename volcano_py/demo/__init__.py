"""The demo: a story on an embedded cluster, with a live view and a summary of what happened."""
