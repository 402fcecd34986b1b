"""Scenarios: a cluster in, decisions out, as YAML tables. They are the main tests of the decision core."""
