"""ClickHouse, which readers may ask instead: how it is opened, and what it spells differently.

Its driver is loaded when an address of it is opened, and never otherwise. Statements are those of
the other engines. Here they get the meaning that they have there: the settings are those of
standard SQL, and the compiler writes the few operators that mean something else to ClickHouse.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Engine, create_engine
from sqlalchemy.sql.compiler import SQLCompiler

from toolfault_collector.storage.database.statements import KeptStatements

__all__ = ["SETTINGS", "open_columnar"]

SETTINGS: Final = {
    "join_use_nulls": 1,  # what an outer join does not find is null, not 0 or ""
    "aggregate_functions_null_for_empty": 1,  # so are the sum and the least of no rows
    "cast_keep_nullable": 1,
    "final": 1,  # of a row that came twice the last counts, before ClickHouse has merged them
    "do_not_merge_across_partitions_select_final": 1,  # a row never changes its partition
    # They are new there, and some of them gave wrong numbers: whoever writes one is told.
    "allow_experimental_correlated_subqueries": 0,
}
"""What makes ClickHouse answer as SQL says (https://clickhouse.com/docs/operations/settings)."""


def open_columnar(url: str) -> Engine:
    """Open the ClickHouse of *url*, ``clickhousedb://...``, to read from it.

    ``clickhousedb:///NAME?interface=chdb`` is the engine within this process.
    """
    # The driver knows settings of the server by this prefix.
    settings = {f"ch_{name}": value for name, value in SETTINGS.items()}
    # Its dialect does not tell SQLAlchemy which tables a join connects, so each looks apart to it.
    engine = create_engine(
        url,
        hide_parameters=True,
        execution_options={"compiled_cache": KeptStatements()},
        connect_args=settings,
        enable_from_linting=False,
    )
    own = engine.dialect.statement_compiler
    engine.dialect.statement_compiler = type("ColumnarCompiler", (_Spelling, own), {})
    return engine


class _Spelling(SQLCompiler):
    """Writes what ClickHouse spells differently, or means something else by."""

    def visit_truediv_binary(self, binary: Any, operator: object, **kw: Any) -> str:
        """Divide as floats: the cast that other engines need would halve their digits here."""
        return f"{self.process(binary.left, **kw)} / {self.process(binary.right, **kw)}"

    def visit_floordiv_binary(self, binary: Any, operator: object, **kw: Any) -> str:
        """Divide whole numbers, towards 0 as the other engines do."""
        return f"intDiv({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_custom_op_binary(self, element: Any, operator: Any, **kw: Any) -> str:
        """Write operators that ClickHouse has as functions."""
        if operator.opstring == "&":
            left, right = self.process(element.left, **kw), self.process(element.right, **kw)
            return f"bitAnd({left}, {right})"
        plain: Any = super()
        return str(plain.visit_custom_op_binary(element, operator, **kw))

    def visit_json_getitem_op_binary(self, binary: Any, operator: object, **kw: Any) -> str:
        """Read a value out of JSON, which is stored as text."""
        kind = "Bool" if isinstance(binary.type, Boolean) else "String"
        name = self.process(binary.right, **kw)
        return f"JSONExtract({self.process(binary.left, **kw)}, {name}, 'Nullable({kind})')"

    def visit_aggregate_strings_func(self, fn: Any, **kw: Any) -> str:
        """Put texts together, in no order."""
        column, separator = fn.clauses
        texts = f"groupArray({self.process(column, **kw)})"
        return f"arrayStringConcat({texts}, {self.process(separator, **kw)})"
