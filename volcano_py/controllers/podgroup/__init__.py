"""The PodGroup controller: gives pods that no Job made a PodGroup, so that Volcano can schedule them."""
