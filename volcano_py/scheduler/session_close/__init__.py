"""Closing a session: plugins, then the reports about jobs, queues and invalid objects. Volcano: CloseSession."""
