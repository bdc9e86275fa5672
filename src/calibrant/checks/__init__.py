"""What is wrong with predictions, as findings with stable codes."""
