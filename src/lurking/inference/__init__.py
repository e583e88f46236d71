"""Exact expectations over what is not observed: engines, compiled problems, questions to a network."""
