"""Figures, tables and reports of result sets."""
