"""The UI half of the dashboard: draws page models. Only `app`, `shell`, `live` and `pages` import the UI library."""
