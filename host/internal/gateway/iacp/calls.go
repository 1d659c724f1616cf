package iacp

import (
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"skep/host/internal/gateway"
)

// Times of the connections that the gateway opens itself.
const (
	dialTime  = 10 * time.Second // for TCP and TLS
	lastPause = time.Minute      // between two attempts, after pauses that double (I-057)
	lookTime  = time.Second      // between two looks at what a reload has changed
)

// calls are the connections to the partners that have an address: one each, made again when
// it is lost.
type calls struct {
	g       *Gateway
	running sync.WaitGroup

	mu     sync.Mutex
	byName map[string]*call
}

// call keeps the connection to one partner.
type call struct {
	key callKey
	end context.CancelCauseFunc
	// tried is closed after the first attempt; err is what the last one has met, nil while it
	// is connected. calls.mu guards err.
	tried     chan struct{}
	triedOnce sync.Once
	err       error
}

// callKey is what a connection depends on: with another one it is made anew.
type callKey struct {
	tenant, url string
	credential  [sha256.Size]byte
}

func callKeyOf(p gateway.Partner) callKey {
	return callKey{p.Tenant, p.URL, sha256.Sum256([]byte(p.Dialer.Token() + "\x00" + p.Dialer.APIKey()))}
}

// errChanged ends a connection to a partner whose address or credential is another one.
var errChanged = errors.New("the partner's table has changed")

// keep keeps the connections until ctx ends, and waits for their ends.
func (all *calls) keep(ctx context.Context) {
	defer all.running.Wait()
	for {
		all.adjust(ctx)
		if !gateway.Pause(ctx, lookTime) {
			return
		}
	}
}

// adjust begins and ends calls as the configuration in force has them.
func (all *calls) adjust(ctx context.Context) {
	wanted := map[string]callKey{}
	for _, p := range all.g.Partners() {
		if p.Dialer != nil {
			wanted[p.Name] = callKeyOf(p)
		}
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for name, c := range all.byName {
		if key, stays := wanted[name]; !stays || key != c.key {
			c.end(errChanged)
			delete(all.byName, name)
		}
	}
	for name, key := range wanted {
		if all.byName[name] == nil {
			c := &call{key: key, tried: make(chan struct{}), err: errAway}
			var calling context.Context
			calling, c.end = context.WithCancelCause(ctx)
			all.byName[name] = c
			all.running.Go(func() { all.call(calling, name, c) })
		}
	}
}

// call connects to a partner, again and again, with pauses that double and are drawn by
// chance, so that many hosts do not come back at once (I-057, I-061).
func (all *calls) call(ctx context.Context, name string, c *call) {
	defer c.end(nil)
	pause := all.g.FirstPause
	for ctx.Err() == nil {
		p, ok := all.g.Runtime.Partner(name)
		if !ok || p.Dialer == nil {
			return
		}
		began := time.Now()
		wait, up, err := all.g.visit(ctx, p, c)
		if ctx.Err() != nil {
			return
		}
		all.set(c, err)
		all.g.Log.Warn("iacp: the connection to a partner ended", "partner", name, "error", err)
		if up && time.Since(began) >= pause {
			pause = all.g.FirstPause
		}
		if !gateway.Pause(ctx, max(wait, pause/2+rand.N(pause/2+1))) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// set notes what an attempt has met, nil for a connection.
func (all *calls) set(c *call, err error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	c.err = err
	c.triedOnce.Do(func() { close(c.tried) })
}

// state is why a partner that is called has no connection. It waits for the first attempt.
func (all *calls) state(ctx context.Context, name string) error {
	all.mu.Lock()
	c := all.byName[name]
	all.mu.Unlock()
	if c == nil {
		return errAway
	}
	select {
	case <-c.tried:
	case <-ctx.Done():
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	return c.err
}

// down lists the called partners without a connection.
func (all *calls) down() string {
	all.mu.Lock()
	defer all.mu.Unlock()
	var names []string
	for name, c := range all.byName {
		if c.err != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
