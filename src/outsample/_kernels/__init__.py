"""Every numba loop, and nothing else: arrays in, arrays out, rows ``start`` to ``stop``.

Kernels factor their small matrices themselves. LAPACK called from many threads lets the thread
pools of BLAS collide, which costs more than the algebra.
"""
