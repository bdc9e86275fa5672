"""What the predictions are and where they live: one value that every verb takes."""
