"""What would unblock a job: changes that were tried in a cycle and let it start."""
