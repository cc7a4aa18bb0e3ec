"""Everything that is drawn or tabulated from result rows; needs neither compiler nor GPU."""
