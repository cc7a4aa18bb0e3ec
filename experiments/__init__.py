"""What is measured (TOML), and the programs that measure, compare, publish and read real input."""
