"""Chains: annealing from a tractable start to the posterior, Gibbs sampling, diagnostics."""
