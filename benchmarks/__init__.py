"""The benchmark suite: every row runs beside what one would write by hand, in the same run on the same data.

`make bench` (or `make bench-quick`) runs all of it; `python -m benchmarks --help` says more. A row is a function in
benchmarks/rows/: its bar, how ours is called, and the reference stand there together.
"""
