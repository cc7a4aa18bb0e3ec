"""The commands xcorr, xcorr piv and xcorr autocorr."""
