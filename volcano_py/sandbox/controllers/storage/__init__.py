"""Controllers of volumes: binding of claims, protection of what is used."""
