"""Rows as Parquet, row group by row group. Needs the extra ``toolfault-server[parquet]``."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final

import msgspec

from toolfault_dashboard.queries.lists.streams import RowStream

__all__ = ["MissingParquet", "is_parquet_there", "write_parquet"]

ROW_GROUP: Final = 20_000
"""Rows of a row group: some 10 MiB of failures while they are collected."""

BATCH: Final = 1_000
"""Rows that become columns at a time, while the processor has them at hand."""

MOST_KNOWN: Final = 20_000
"""Combinations of packed columns that are remembered at most."""


class MissingParquet(RuntimeError):  # noqa: N818 - reads as what is the matter
    """pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__("Parquet needs pyarrow: pip install pyarrow.")


def is_parquet_there() -> bool:
    """Return whether pyarrow is installed; it is not loaded."""
    return "pyarrow" in sys.modules or find_spec("pyarrow") is not None


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
    batches = _batches(pa, schema, stream)
    writer = pq.ParquetWriter(
        _Forward(sink),
        schema,
        compression="zstd",
        # Looking for what repeats costs most where nothing does, and the least and greatest text of
        # 20,000 rows say nothing to a reader who looks for one.
        use_dictionary=[name for name in stream.columns if name not in stream.varied],
        write_statistics=[each.name for each in schema if each.type != pa.string()],
    )
    whole = False
    # Compressing needs no interpreter: another thread does it while the next rows are fetched.
    with ThreadPoolExecutor(1) as beside:
        writing: Future[None] | None = None
        try:
            while part := list(islice(batches, ROW_GROUP // BATCH)):
                group = pa.Table.from_batches(part, schema=schema)
                if writing is not None:
                    writing.result()
                    yield _taken(sink)
                writing = beside.submit(writer.write_table, group)
            whole = True
        finally:
            if not whole:
                # Closing would write the footer that makes the part a whole file.
                writer.is_open = False
        if writing is not None:
            writing.result()
            yield _taken(sink)
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


def _batches(pa: Any, schema: Any, stream: RowStream) -> Iterator[Any]:
    packed = stream.packed
    names = packed.names if packed else tuple((name,) for name in stream.columns)
    texts = packed.texts if packed else {}
    makes = [
        _Known(pa, [schema.field(name).type for name in own]).arrays
        if len(own) > 1
        else _maker(pa, schema.field(own[0]).type, texts.get(own[0]))
        for own in names
    ]
    for part in _parts(packed.parts) if packed else _batched(stream.rows):
        columns = zip(makes, zip(*part, strict=True), strict=True)
        arrays = [array for make, values in columns for array in make(values)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _batched(rows: Iterator[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
    while part := list(islice(rows, BATCH)):
        yield part


def _parts(parts: Iterator[Sequence[Sequence[Any]]]) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield *parts*, as many together as become columns at a time."""
    whole: list[Sequence[Any]] = []
    for part in parts:
        whole += part
        if len(whole) >= BATCH:
            yield whole
            whole = []
    if whole:
        yield whole


def _maker(
    pa: Any, kind: Any, texts: Mapping[Any, str | None] | None
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what makes the array of a column that comes by itself, as an id or as it is."""
    if texts is None:
        return lambda values: (_array(pa, values, kind),)
    return lambda values: (pa.array([texts[each] for each in values], type=kind),)


class _Known:
    """The values of packed columns: each combination is taken apart once, then looked up."""

    def __init__(self, pa: Any, kinds: Sequence[Any]) -> None:
        self._pa, self._kinds = pa, kinds
        self._places: dict[str, int] = {}
        self._arrays: list[Any] = []

    def arrays(self, packed: Sequence[str]) -> Sequence[Any]:
        """Return the arrays of the columns that are in *packed*."""
        places = self._places
        if len(places) > MOST_KNOWN:
            places.clear()
            self._arrays = []
        new = dict.fromkeys(each for each in packed if each not in places)
        if new:
            columns = zip(*map(msgspec.json.decode, new), strict=True)
            pairs = zip(columns, self._kinds, strict=True)
            arrays = [_array(self._pa, values, kind) for values, kind in pairs]
            if self._arrays:
                both = zip(self._arrays, arrays, strict=True)
                arrays = [self._pa.concat_arrays(each) for each in both]
            self._arrays = arrays
            places.update(zip(new, range(len(places), len(places) + len(new)), strict=True))
        at = self._pa.array([places[each] for each in packed], type=self._pa.int32())
        return [array.take(at) for array in self._arrays]


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
