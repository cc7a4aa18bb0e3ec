"""The built library, and arrays as it takes them."""
