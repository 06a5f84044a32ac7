"""What constraints of users read, by kind of model."""
