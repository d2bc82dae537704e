"""Fine-tuning sets: what their rows say, and the tokens that are learnt from them."""
