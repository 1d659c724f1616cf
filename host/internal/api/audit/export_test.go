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

// HoldWrites makes writes wait until release is called. Gathered counts the entries of the
// batch that waits.
func (l *Log) HoldWrites() (gathered func() int, release func()) {
	l.mu.Lock()
	return func() int {
		l.appends.mu.Lock()
		defer l.appends.mu.Unlock()
		if l.appends.next == nil {
			return 0
		}
		return len(l.appends.next.entries)
	}, l.mu.Unlock
}

// Recheck is what each interval of Run does.
func (l *Log) Recheck() { l.recheck() }

// Missed counts the acts that no entry counts yet.
func (l *Log) Missed() int64 { return l.status.missed.Load() }

// NoteWrite notes the result of a write.
func (l *Log) NoteWrite(err error) { l.noteWrite(err) }
