"""What coding agents read: eight read-only tools, over MCP and on the command line.

``tools`` says what can be asked, ``untrusted`` marks what was recorded, ``answers`` keeps an answer
small. ``sdk`` puts the tools into a server of the official MCP SDK, ``stdio`` and ``http`` carry
it. Only these three load the SDK, and only when they are used.
"""
