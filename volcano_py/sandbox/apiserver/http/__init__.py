"""HTTP: server, routing, discovery, watches and lists as streams, audit log."""
