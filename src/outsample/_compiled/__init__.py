"""Compiled loops (numba) over rows ``start`` to ``stop`` that write into the caller's arrays.

Kernels factor their small matrices themselves: with LAPACK called from several threads, the thread
pools of BLAS compete for the cores, which costs more than the algebra.
"""
