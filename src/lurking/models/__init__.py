"""Where parameters live, their priors and ties, and the families of nodes."""
