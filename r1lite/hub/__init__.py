"""Models and data sets of the Hugging Face Hub."""
