"""Figures, tables and reports of result sets."""

from xcorr.moved import tell

tell(
    __name__,
    {
        "accuracy_table": "plots.tables.accuracy",
        "best_by_mode": "plots.tables.best_by_mode",
        "best_table": "plots.tables.best_table",
        "beyond": "plots.tables.beyond",
        "check_claims": "plots.tables.claims",
        "claims": "plots.tables.claims",
        "coverage": "plots.tables.coverage",
        "crossover": "plots.tables.crossover",
        "front": "plots.report.front",
        "inline_svg": "plots.report.inline_svg",
        "outcomes": "plots.tables.outcomes",
        "readme_blocks": "plots.report.pages",
        "real_tables": "plots.tables.real_input",
        "regret": "plots.tables.regret",
        "selection": "plots.tables.selection",
        "table1": "plots.tables.table1",
    },
)
