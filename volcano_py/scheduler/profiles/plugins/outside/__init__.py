"""Plugins that ask other processes: extender webhooks and remote plugins."""
