"""Rows as Parquet, row group by row group. Needs the extra ``toolfault-server[parquet]``."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from toolfault_dashboard.queries.streams import RowStream

__all__ = ["MissingParquet", "write_parquet"]

ROW_GROUP: Final = 20_000
"""Rows of a row group: some 10 MiB of failures while they are collected."""

BATCH: Final = 250
"""Rows that become columns at a time, while they are still in the processor's cache."""


class MissingParquet(RuntimeError):  # noqa: N818 - reads as what is the matter
    """pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__("Parquet needs pyarrow: pip install 'toolfault-server[parquet]'.")


def write_parquet(stream: RowStream) -> Iterator[bytes]:
    """Write *stream* as one Parquet file.

    A file that broke off has no footer, so that no reader takes it for a whole one.

    Raises:
        MissingParquet: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingParquet from None
    schema = pa.schema([(name, _type(pa, name, stream)) for name in stream.columns])
    return _written(pa, pq, schema, stream)


def _written(pa: Any, pq: Any, schema: Any, stream: RowStream) -> Iterator[bytes]:
    sink = io.BytesIO()
    rows = iter(stream.rows)
    writer = pq.ParquetWriter(_Forward(sink), schema, compression="zstd")
    try:
        while batches := _batches(pa, schema, islice(rows, ROW_GROUP)):
            writer.write_table(pa.Table.from_batches(batches, schema=schema))
            yield _taken(sink)
    except BaseException:
        # Closing would write the footer that makes the part a whole file.
        writer.is_open = False
        raise
    writer.close()
    yield _taken(sink)


class _Forward(io.RawIOBase):
    """A file that only grows: positions count everything written, the sink what was not taken."""

    def __init__(self, sink: io.BytesIO) -> None:
        super().__init__()
        self._sink = sink
        self._written = 0

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Append *data*."""
        size = self._sink.write(data)
        self._written += size
        return size

    def tell(self) -> int:
        """Return the bytes written so far."""
        return self._written


def _taken(sink: io.BytesIO) -> bytes:
    data = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return data


def _type(pa: Any, name: str, stream: RowStream) -> Any:
    if name in stream.times:
        return pa.timestamp("us", tz="UTC")
    kinds = {"integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
    return kinds.get(stream.kinds.get(name, ""), pa.string())


def _batches(pa: Any, schema: Any, rows: Iterator[Sequence[Any]]) -> list[Any]:
    found = []
    while part := list(islice(rows, BATCH)):
        columns = zip(schema.types, zip(*part, strict=True), strict=True)
        arrays = [_array(pa, values, kind) for kind, values in columns]
        found.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return found


def _array(pa: Any, values: Sequence[Any], kind: Any) -> Any:
    first = values[0]
    if first is None and values.count(None) == len(values):
        return pa.nulls(len(values), type=kind)
    return pa.array(_cells(pa, values, kind), type=kind)


_TEXTS: Final = frozenset({str, type(None)})


def _cells(pa: Any, values: Sequence[Any], kind: Any) -> Sequence[Any]:
    if kind == pa.bool_():
        return [None if value is None else bool(value) for value in values]
    if kind != pa.string() or _TEXTS.issuperset(map(type, values)):
        return values
    return [
        value
        if value is None or isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
        for value in values
    ]
