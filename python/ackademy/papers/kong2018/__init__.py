"""Kong 2018: loss predictors of LP-TCP."""
