"""ln p(data | structure): one file per score, each registered by name."""
