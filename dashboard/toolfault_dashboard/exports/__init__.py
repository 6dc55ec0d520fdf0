"""Exports: exactly the filtered view, streamed, inert in a spreadsheet.

stream = queries.iter_failures(conn, scope)
for chunk in write(stream, "csv"):
    ...
"""

from toolfault_dashboard.exports.cells import guarded, plain, timestamp
from toolfault_dashboard.exports.named import TABLE_NAMES, TableName, named_table
from toolfault_dashboard.exports.parquet import MissingParquet
from toolfault_dashboard.exports.tables import table_stream
from toolfault_dashboard.exports.writers import FORMATS, MEDIA_TYPES, Format, write

__all__ = [
    "FORMATS",
    "MEDIA_TYPES",
    "TABLE_NAMES",
    "Format",
    "MissingParquet",
    "TableName",
    "guarded",
    "named_table",
    "plain",
    "table_stream",
    "timestamp",
    "write",
]
