"""The benchmark: full against differential refreshes of the same stream tables, in one process.

python -m bench run --queries q01,q03 --scale 0.1     # TPC-H, costs, micro set, growth
python -m bench ablation                              # each optimisation switched off in turn
python -m bench report docs/benchmarks.json           # the page and the picture from stored numbers

measure.py   one run: create the variants of each query, then cycles of mutate, refresh, compare
tpch.py micro.py growth.py cost.py ablation.py        what is measured, each a list of runs
results.py   the stored numbers    summary.py   what follows from them
goals.py     what they are measured against
report.py chart.py tables.py       how they are shown
"""
