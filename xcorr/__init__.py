"""Cross-correlate arrays with the fastest known variant: the binding of libxcorr, the choice, the command."""
