"""What the robot does now: velocities from encoders, the base's pose from the lift and sources."""
