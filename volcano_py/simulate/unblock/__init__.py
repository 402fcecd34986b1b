"""What would unblock a job: changes after which, in a simulated cycle, the job starts."""
