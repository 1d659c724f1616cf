package audit

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// gap is the act of an entry that tells of others which could not be written.
const gap = "audit.gap"

// trouble is what is known of writes that failed. Who asks for it never waits for
// the disk.
type trouble struct {
	// failed counts the writes, and missed the acts that no entry tells of yet.
	failed, missed atomic.Int64
	last           atomic.Pointer[error] // nil after one that succeeded
}

// Trouble is why the last write failed, nil when it did not. While there is some,
// [Log.Run] tries again, and writes how many acts are missing.
func (l *Log) Trouble() error {
	if err := l.trouble.last.Load(); err != nil {
		return *err
	}
	return nil
}

// Failures counts the writes that have failed since [Open].
func (l *Log) Failures() int64 { return l.trouble.failed.Load() }

// note hears what became of a write.
func (l *Log) note(err error) {
	switch {
	case errors.Is(err, ErrClosed):
	case err == nil:
		if l.trouble.last.Swap(nil) != nil {
			l.opt.Logger.Info("the audit log can be written again")
		}
	default:
		l.trouble.failed.Add(1)
		if l.trouble.last.Swap(&err) == nil {
			l.opt.Logger.Error("the audit log cannot be written", "err", err)
		}
	}
}

// mend tries to write again after a failure, and tells of it.
func (l *Log) mend() {
	missed, last := l.trouble.missed.Load(), l.Trouble()
	if missed == 0 && last == nil {
		return
	}
	reason := fmt.Sprintf("%d acts could not be written", missed)
	if last != nil {
		reason += ": " + last.Error()
	}
	if l.write([]Entry{{Act: gap, Outcome: Failed, Count: missed, Reason: reason}}) == nil {
		l.trouble.missed.Add(-missed)
	}
}
