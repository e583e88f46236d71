"""Compiled chains: Gibbs sweeps, annealing, Metropolis steps, collapsed samplers."""
