"""Events on ClickHouse: SQL accepts them, and what it stored is shipped there.

Opt-in (``TOOLFAULT_EVENTS_URL``). `outbox` notes in the transaction of each change which rows it
changed, `shipper` copies these rows in blocks, `tables` is the schema there,
`database` opens it, `dialect` is what it spells differently.
"""
