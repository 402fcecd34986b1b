"""Controllers of batch/v1: Jobs, and removal of finished ones."""
