package audit

// Flush writes what was refused.
func (l *Log) Flush() error { return l.flush() }

// Waiting counts the refusals that wait for a summary.
func (l *Log) Waiting() int64 {
	l.refusals.mu.Lock()
	defer l.refusals.mu.Unlock()
	return l.refusals.others
}

// Break makes every write fail.
func (l *Log) Break() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close()
}
