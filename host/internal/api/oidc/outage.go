package oidc

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// logPause is the shortest interval between two log lines of an outage.
const logPause = time.Minute

// outage logs that a backend does not answer; callers get no details. It is safe
// for concurrent use.
type outage struct {
	table string // as in the configuration
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	err    error
	logged time.Time
}

func newOutage(table string, log *slog.Logger, now func() time.Time) *outage {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if now == nil {
		now = time.Now
	}
	return &outage{table: table, log: log, now: now}
}

// record notes the result of a request to the backend; nil means success.
func (o *outage) record(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, now := o.err, o.now()
	o.err = err
	switch {
	case err == nil && was != nil:
		o.logged = time.Time{}
		o.log.Info("the authority answers again", "authority", o.table)
	case err != nil && now.Sub(o.logged) >= logPause:
		o.logged = now
		o.log.Warn("who callers are cannot be told: the authority does not answer as it should", "authority", o.table, "err", err)
	}
}

// warnings returns the fault of the last answer, if there was one.
func (o *outage) warnings() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s does not answer as it should: %v", o.table, o.err)}
}
