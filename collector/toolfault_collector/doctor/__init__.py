"""The doctor: what is wrong with an installation, and whether stored figures are right."""
