"""Published experiments done again, one package per paper."""
