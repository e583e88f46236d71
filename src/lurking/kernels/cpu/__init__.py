"""Compiled kernels (Numba): lazy signatures, cached on disk, free of the GIL, no fast-math."""
