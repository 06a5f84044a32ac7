"""What leaves predict: labels and values, and what they cost, shared by formulations."""
