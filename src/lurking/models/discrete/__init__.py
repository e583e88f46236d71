"""Discrete networks: the flat parameter layout, Dirichlet priors, the file format of a network."""
