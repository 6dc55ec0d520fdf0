"""Pure statistics over plain numbers: no database, no clock, no I/O."""
