package authority

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// logPause is how often an authority that does not answer is logged at most.
const logPause = time.Minute

// outage tells operators that an authority does not answer: callers learn no
// more than that. It is safe for concurrent use.
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

// note keeps how the authority was found; nil says that it answers.
func (o *outage) note(err error) {
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

// warnings is what is wrong with the last answer, if anything is.
func (o *outage) warnings() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s does not answer as it should: %v", o.table, o.err)}
}
