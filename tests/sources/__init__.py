"""The equations of the sources as tests; docs/sources.md lists them with their numbers."""
