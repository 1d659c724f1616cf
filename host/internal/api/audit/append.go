package audit

import (
	"runtime"
	"sync"
)

// appends gathers the entries that wait for a write of others.
type appends struct {
	mu   sync.Mutex
	next *batch // nil while no entry waits
}

// batch is entries that are written in one piece.
type batch struct {
	entries []Entry
	// written is closed after the write, whose error err is.
	written chan struct{}
	err     error
}

// Append writes an entry and does not wait for the disk: the entry survives the end of
// the process, and is on disk after the interval of [Log.Run]. Entries that come during a
// write are written together by the next one.
func (l *Log) Append(e Entry) error {
	b, first := l.appends.join(e)
	if first {
		l.writeBatch(b)
	}
	<-b.written
	return b.err
}

// join adds an entry to the next batch. The caller whose entry is its first writes it.
func (a *appends) join(e Entry) (b *batch, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if first = a.next == nil; first {
		a.next = &batch{written: make(chan struct{})}
	}
	a.next.entries = append(a.next.entries, e)
	return a.next, first
}

// close ends a batch: later entries join another.
func (a *appends) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next = nil
}

// writeBatch writes a batch after the write that is under way. It lets other goroutines run
// first: the messages of one commit are recorded at the same time, and one write takes all
// of them.
func (l *Log) writeBatch(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	runtime.Gosched()
	l.appends.close()
	b.err = l.writeLocked(b.entries, len(b.entries), false)
	close(b.written)
}

// recheck makes the next write look at the file of a sole writer, too: it may have been
// moved, as it is by those who begin a new log.
func (l *Log) recheck() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.checked = false
}
