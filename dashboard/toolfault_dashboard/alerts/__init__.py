"""Alerts: rules over the figures of the pages, one message per problem, sent once.

``rules`` says what can be asked, ``figures`` measures it with the query functions of the pages,
``evaluation`` is the pure state machine, ``preview`` replays it over the past, ``store`` keeps
rules, states and the outbox, ``channels`` sends, and ``service`` does all of that now and then.
Every threshold, default and promise is in ``docs/alerts.md``.
"""
