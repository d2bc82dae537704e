"""Problems, rewards and votes: what training, evaluation and curation share."""
