"""The collector: takes failures in, keeps them, and never says it has what it could lose."""
