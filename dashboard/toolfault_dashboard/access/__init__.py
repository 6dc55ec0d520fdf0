"""Who may see and do what: sign-in, sessions, roles, and what guards every request."""
