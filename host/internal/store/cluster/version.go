package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch is something that hosts keep in memory and change in the server. Each change raises its
// number in the table changes, in one transaction with it.
type watch struct {
	read func(ctx context.Context) error
	// have is the number that was read last, -1 before the first time, want the newest that was
	// seen, at the time seen.
	have, want int64
	seen       time.Time
	// current is the newest time at which have was the server's number.
	current time.Time
}

// Watch makes read be called when a version has another number than at the last call, at the
// latest with the next beat. One that fails is called again. It is called before Run.
func (m *Member) Watch(version string, read func(ctx context.Context) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watched[version] = &watch{read: read, have: -1}
}

// IsCurrent reports whether what was read of a version was the newest within the last TTL.
func (m *Member) IsCurrent(version string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watched[version]
	return !w.current.IsZero() && m.opts.Now().Sub(w.current) < m.opts.TTL
}

// readVersions reads the numbers of versions.
func (m *Member) readVersions(ctx context.Context) error {
	began := m.opts.Now()
	numbers := map[string]int64{}
	err := m.beats.query(ctx, "SELECT name, n FROM changes", nil, func(r pgx.Rows) error {
		var name string
		var n int64
		err := r.Scan(&name, &n)
		numbers[name] = n
		return err
	})
	if err != nil {
		return fmt.Errorf("read the versions: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, w := range m.watched {
		w.want, w.seen = numbers[name], began
		if w.want == w.have {
			w.current = began
			continue
		}
		select {
		case m.stale <- struct{}{}:
		default: // it is to be read already
		}
	}
	return nil
}

// readStale reads what has changed.
func (m *Member) readStale(ctx context.Context) {
	for name, read := range m.staleWatches() {
		m.mu.Lock()
		w := m.watched[name]
		want, seen := w.want, w.seen
		m.mu.Unlock()
		if err := read(ctx); err != nil {
			if ctx.Err() == nil {
				m.opts.Logger.Warn("cannot read what other hosts have changed", "what", name, "err", err)
			}
			continue
		}
		m.mu.Lock()
		w.have, w.current = want, seen
		m.mu.Unlock()
	}
}

func (m *Member) staleWatches() map[string]func(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[string]func(context.Context) error{}
	for name, w := range m.watched {
		if w.want != w.have {
			found[name] = w.read
		}
	}
	return found
}

// readAllStale reads what has changed until ctx ends.
func (m *Member) readAllStale(ctx context.Context) {
	for {
		select {
		case <-m.stale:
			m.readStale(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// channel is where groups that raise a version send a notice, with the name of their schema.
const channel = "skep"

// listen sends to woken when a version may have changed, until ctx ends. Nothing depends on it: each
// beat reads the versions, too.
func (m *Member) listen(ctx context.Context, woken chan<- struct{}) {
	for ctx.Err() == nil {
		err := m.notices.waitNotice(ctx, channel)
		if err != nil {
			m.opts.Logger.Debug("no notices from the server", "err", err)
			select {
			case <-time.After(m.opts.Beat):
			case <-ctx.Done():
			}
			continue
		}
		select {
		case woken <- struct{}{}:
		default: // it is awake
		}
	}
}
