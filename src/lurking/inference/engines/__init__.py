"""Exact engines: expectations of what is unobserved, by enumeration, on junction trees, block by block."""
