package audit

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// actGap is the act of an entry that counts acts which could not be written.
const actGap = "audit.gap"

// writeStatus holds the results of writes. Reading it never waits for the disk.
type writeStatus struct {
	// failed counts failed writes, missed the acts that no entry counts yet.
	failed, missed atomic.Int64
	lastError      atomic.Pointer[error] // nil after one that succeeded
}

// LastError returns why the last write failed, or nil. After a failure [Log.Run]
// tries again and records how many acts are missing.
func (l *Log) LastError() error {
	if err := l.status.lastError.Load(); err != nil {
		return *err
	}
	return nil
}

// Failures counts the failed writes since [Open].
func (l *Log) Failures() int64 { return l.status.failed.Load() }

// noteWrite records and logs the result of a write.
func (l *Log) noteWrite(err error) {
	switch {
	case errors.Is(err, ErrClosed):
	case err == nil:
		if l.status.lastError.Swap(nil) != nil {
			l.opt.Logger.Info("the audit log can be written again")
		}
	default:
		l.status.failed.Add(1)
		if l.status.lastError.Swap(&err) == nil {
			l.opt.Logger.Error("the audit log cannot be written", "err", err)
		}
	}
}

// retryWrite writes an entry about the gap after a failure.
func (l *Log) retryWrite() {
	last := l.LastError() // first: the acts of a failure are counted before its error is seen
	missed := l.status.missed.Load()
	if missed == 0 && last == nil {
		return
	}
	reason := "the log could not be written" // refusals count on in the next summary
	if missed > 0 {
		reason = fmt.Sprintf("%d acts could not be written", missed)
	}
	if last != nil {
		reason += ": " + last.Error()
	}
	if l.write([]Entry{{Act: actGap, Outcome: Failed, Count: missed, Reason: reason}}, 0, true) == nil {
		l.status.missed.Add(-missed)
	}
}
