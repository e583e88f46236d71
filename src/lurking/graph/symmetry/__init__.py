"""Relabelings that leave a structure and its prior unchanged, and the canonical form."""
