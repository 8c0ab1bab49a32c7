"""State estimation: velocities from encoders, the base's pose from the lift and pose sources."""
