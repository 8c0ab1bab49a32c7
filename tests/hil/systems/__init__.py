"""Tasks of systems without bodies, for rigs in tests."""
