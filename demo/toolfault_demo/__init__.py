"""A small fleet of agents whose tools fail, to look at what a server shows of them.

Only the agents are invented: what they plan, how they slip and how they read an error text. The
tools are declared with the SDK, and every failure crosses HTTP into a real collector.
``problems.py`` says which problems are planted and how they rank.

The room rule: an agent like any other. It imports the public names of ``toolfault`` and nothing of
the server, of which it is told an address and a key.
"""

from __future__ import annotations
