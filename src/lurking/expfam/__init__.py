"""Exponential-family pieces shared by models: here the Dirichlet."""
