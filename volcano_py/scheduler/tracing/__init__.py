"""Traces of jobs, from submission to binding, for OpenTelemetry. Volcano: none.

`job_traces` collects the times, and is pure; `otlp` sends them.
"""
