"""What every stage that trains shares: setup, the life of a run, memory."""
