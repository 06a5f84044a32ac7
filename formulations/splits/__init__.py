"""How samples get to leaves: variables and rows of the splits, shared by formulations."""
