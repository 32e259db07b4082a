"""The scorecard: a controller on the evaluations that RFC 9743 asks for, beside other controllers.

card      the file `scorecards/<name>.toml`: rows, parts, checks
grid      the networks of a part, thinned
ran       what the runs of a controller on a network left
measures  one number of these runs
marks     from numbers over networks to pass or fail
study     cells, results, tables
"""
