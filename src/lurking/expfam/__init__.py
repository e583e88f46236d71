"""Conjugate families of parameters, and blocks of them over one flat vector."""
