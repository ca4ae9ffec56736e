"""Pictures of experiments and benchmarks, drawn with `outsample.plots.canvas`."""
