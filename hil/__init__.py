"""Hardware in the loop."""
