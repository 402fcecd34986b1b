"""The job controller: a Job becomes a PodGroup, then pods, and its status tells where it stands."""
