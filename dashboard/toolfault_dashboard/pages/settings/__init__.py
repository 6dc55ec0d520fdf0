"""What people set: keys and people, alerts, views, their session; and the help."""
