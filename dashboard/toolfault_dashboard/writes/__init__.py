"""What readers write: states of kinds, picked fixes, saved views, changes, keys, notes of exports.

Accounts and sessions are written by ``access.signin``, alerts by ``alerts.store``.
"""
