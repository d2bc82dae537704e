"""A run's directory and what keeps it whole: checkpoints, signals, a watchdog, the display."""
