package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch is something that hosts keep in memory and change in the server. Each change raises its
// number in the table changes, in one transaction with it.
type watch struct {
	read func(ctx context.Context) error
	// stale has something once it is to be read again.
	stale chan struct{}
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
	m.watched[version] = &watch{read: read, stale: make(chan struct{}, 1), have: -1}
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
		case w.stale <- struct{}{}:
		default: // it is to be read already
		}
	}
	return nil
}

// readStale reads what has changed of a version.
func (m *Member) readStale(ctx context.Context, name string, w *watch) {
	m.mu.Lock()
	want, seen, stale := w.want, w.seen, w.want != w.have
	m.mu.Unlock()
	if !stale {
		return
	}
	if err := w.read(ctx); err != nil {
		if ctx.Err() == nil {
			m.opts.Logger.Warn("cannot read what other hosts have changed", "what", name, "err", err)
		}
		return
	}
	m.mu.Lock()
	w.have, w.current = want, seen
	m.mu.Unlock()
}

// readAllStale reads what has changed until ctx ends. One that takes long, as a definition whose modules are
// loaded, does not hold up another, as a revoked token.
func (m *Member) readAllStale(ctx context.Context) {
	var reading sync.WaitGroup
	defer reading.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, w := range m.watched {
		reading.Go(func() {
			for {
				select {
				case <-w.stale:
					m.readStale(ctx, name, w)
				case <-ctx.Done():
					return
				}
			}
		})
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
