"""What a formulation is, and its use: bind it to data, build the model, solve it, check the answer."""
