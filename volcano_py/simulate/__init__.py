"""The scheduler's cycle on clusters that are described by manifests: no API server, no clock, the same decisions."""
