package listen

// Waiting is how many connections have no request.
func (l *Listener) Waiting() int {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return l.gate.fresh.Len() + l.gate.idle.Len()
}

// Addresses is how many networks connections are counted of.
func (l *Listener) Addresses() int {
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	return len(l.gate.from)
}

// Look looks at the files once, as Run does now and then.
func (c *Certificates) Look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look(false)
}

// Warn logs what is worth a word.
func (c *Certificates) Warn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warn()
}
