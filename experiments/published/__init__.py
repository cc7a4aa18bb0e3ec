"""From local sets to published ones, from foreign results to sets."""
