"""HTTP: the endpoints of the collector, who may send, what a request may weigh, error answers."""
