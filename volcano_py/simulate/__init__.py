"""The real cycle on clusters that are only described: no API server, no clock, the same decisions."""
