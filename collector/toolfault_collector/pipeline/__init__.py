"""From requests to transactions: the queue, the one thread that writes, quotas."""
