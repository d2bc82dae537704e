"""The last rung: what calculus says of small integrals, limits, derivatives and sums, by SymPy and inside bounds.

SymPy objects are built from our own trees, node by node; no text ever reaches it. Only expressions whose cost is
known to be small are given to it (polynomials, and single elementary functions of a linear argument).
"""
