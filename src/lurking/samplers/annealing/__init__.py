"""Annealing: paths, populations of weighted chains, and evidence with its standard error."""
