"""Numerical kernels on plain arrays: `reference` (NumPy, slow and obvious) and `cpu` (Numba, compiled)."""
