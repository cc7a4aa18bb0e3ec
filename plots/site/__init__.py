"""The static report in results/report/: pages that answer from a file or a web host, without a network."""
