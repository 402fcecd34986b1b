"""The PodGroup controller: creates PodGroups for pods without a Job, so that the scheduler can schedule them."""
