"""Over structures: comparing them and the posterior over a set of them."""
