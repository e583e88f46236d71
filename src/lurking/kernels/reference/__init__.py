"""The slow, obvious twins that every fast kernel is tested against."""
