"""The plugin fairshare."""
