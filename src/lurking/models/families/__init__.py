"""Families of distributions of one node given its parents, one file each."""
