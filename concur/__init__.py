"""concur: from a robot with a free base to a tracker running on its motors."""
