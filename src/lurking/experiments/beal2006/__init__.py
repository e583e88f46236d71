"""Beal & Ghahramani (2006), Variational Bayesian learning of directed graphical models with hidden variables."""
