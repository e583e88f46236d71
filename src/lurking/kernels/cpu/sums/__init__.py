"""Compiled sums over many terms: subsets, permutations, ranks over a prime field."""
