"""Effective dimension: exact rank over a prime field, by random projections."""
