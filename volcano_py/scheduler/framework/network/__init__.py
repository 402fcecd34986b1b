"""The HyperNodes of a session."""
