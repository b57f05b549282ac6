"""The report's glossary: what its words mean, for who reads a number of a table."""

from ..arguments.choices import LOSS
from .page import Section
from .vocabulary import Vocabulary


def write_glossary(words: Vocabulary, additive: bool, compared: bool) -> Section:
    """Explain the words that a page uses."""
    total, row, rows = words.total, words.names.row, words.names.rows
    called = words.names.prediction
    unit = f" In {called.unit}." if called.unit else ""
    terms = {total: f"{called.description}{unit}"} if called.description and words.space != LOSS else {}
    terms |= {
        "attribution": f"What one feature adds to the {total} of one {row}, or takes off it, with the value that it has there."
        + (f" The attributions of a {row} and the base value add up to its {total}." if additive else ""),
        "importance": f"Mean size of a feature’s attributions, up or down alike: by how much it moves the {total} of a {row} on average."
        " Shares of importance add up to 100% over the features.",
    }
    if additive:
        terms["base value"] = f"The mean {total} with every feature unknown: over the training data as the model keeps it, or over the background."
    terms["±, standard error"] = f"How far a mean may be off, since only so many {rows} were seen: ± is two standard errors, about a 95% interval."
    terms["rank correlation"] = "From −1 to +1 (Spearman): +1 where a higher value of the feature always has a higher attribution."
    if compared:
        terms |= {
            "difference": f"Share of the {rows} that would have to change for both runs to look alike, at least: the largest gap between the"
            " cumulative shares of numbers (Kolmogorov–Smirnov), or half of the summed differences between shares of categories (total variation).",
            "alarm": f"A difference beyond its threshold, or a mean {total} that moved beyond its own, that is no matter of chance:"
            " its corrected p is below the rate of false alarms."
            " What changed of one feature is told together, so there may be fewer things than alarms.",
            "corrected p": "How likely so large a difference is if nothing changed, corrected for how many columns are tested (Benjamini–Hochberg).",
            "PSI": "Population stability index, another measure of difference; without drift it is as large as “PSI without drift” says.",
            "Wasserstein": "How far values have to move on average to look as before, in their own unit.",
        }
    return Section("glossary", "What the words mean", terms=tuple(terms.items()))
