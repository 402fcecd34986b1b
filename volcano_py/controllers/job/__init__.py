"""The job controller: creates the PodGroup and the pods of a Job, and keeps its status."""
