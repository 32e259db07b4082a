"""LP-TCP's loss predictor (Kong 2018): recordings, forests, thresholds."""
