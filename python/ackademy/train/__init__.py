"""Training of learned controllers: `ackademy train`."""
