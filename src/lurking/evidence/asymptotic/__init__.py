"""Scores from a point estimate and a penalty or a curvature."""
