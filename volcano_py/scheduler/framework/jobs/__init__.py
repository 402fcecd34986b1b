"""The jobs of a session: their tasks, sub-jobs, states and order."""
