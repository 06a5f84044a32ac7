"""Valid bounds on the objective, proven from the data before the model is solved."""
