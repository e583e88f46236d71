"""Scores by sampling, with standard errors."""
