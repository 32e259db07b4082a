"""A search for the networks on which a controller is worst."""
