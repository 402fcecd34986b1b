"""The scheduler as a process: loop, server, metrics, health and reports."""
