"""Gaussian kernels: affinities, spectra, bandwidths, smoothing, interpolative decomposition."""
