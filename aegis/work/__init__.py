"""What a worker does to one item: ``function(item, settings, run) -> result``."""
