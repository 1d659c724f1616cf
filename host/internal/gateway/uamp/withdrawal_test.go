package uamp_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/state"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// cancelled has the lab take each ask without an answer, and do with each cancel what a test wants.
// It returns what cancels cite.
func (o *out) cancelled(cancel func(w http.ResponseWriter, n int)) func() []envelope.ID {
	var mu sync.Mutex
	var cited []envelope.ID
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		if s.Intent != envelope.Cancel {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		mu.Lock()
		cited = append(cited, s.ReplyTo)
		n := len(cited)
		mu.Unlock()
		cancel(w, n)
	}, nil)
	return func() []envelope.ID {
		mu.Lock()
		defer mu.Unlock()
		return cited
	}
}

// givesUp has an ask given up whose cancel reaches the lab, and returns its id. On a slow machine
// the time may be over before an ask has left, which is not cancelled.
func (o *out) givesUp(t *testing.T, id string, cited func() []envelope.ID) envelope.ID {
	t.Helper()
	before := len(cited())
	for n := 0; len(cited()) == before; n++ {
		o.carry(t, id, outgoing(fmt.Sprint(id, n), mail.Request, "x", "how many?"), gateway.Refused)
	}
	return cited()[before]
}

// TestWithdrawAgain (U-085): the cancel of an envelope that was given up is sent again while its
// partner is away, also by the next run of the host.
func TestWithdrawAgain(t *testing.T) {
	t.Parallel()
	overSome(t, []string{"http", "websocket", "grpc"}, func(t *testing.T, o *out) {
		o.p.Timeout = 50 * time.Millisecond
		cancels := o.cancelled(func(w http.ResponseWriter, n int) {
			if n < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.WriteHeader(http.StatusAccepted)
		})
		id := o.givesUp(t, "given up", cancels)
		if n := len(o.recordsOf(t, "lab", "withdrawal")); n != 1 {
			t.Fatalf("%d records", n)
		}
		runs(t, o.g)
		until(t, "the end of the record", func() bool { return len(o.recordsOf(t, "lab", "withdrawal")) == 0 })
		if cited := cancels(); !slices.Equal(cited, []envelope.ID{id, id, id}) {
			t.Errorf("%q is cancelled by %q", id, cited)
		}
	}, withTenants)
}

// TestWithdrawOnce (U-085): a cancel that the partner has taken, or refuses, is not sent again.
func TestWithdrawOnce(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(http.ResponseWriter, int){
		"taken":   func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusAccepted) },
		"refused": func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusForbidden) },
	} {
		o := newOut(t)
		o.p.Timeout = 50 * time.Millisecond
		cancels := o.cancelled(cancel)
		o.givesUp(t, name, cancels)
		if n := len(o.recordsOf(t, "lab", "withdrawal")); n != 0 || len(cancels()) != 1 {
			t.Errorf("%s: %d records, %d cancels", name, n, len(cancels()))
		}
	}
}

// TestWithdrawBounds (U-085): so many cancels wait for a partner that is away, each for an hour. One
// more is not sent again.
func TestWithdrawBounds(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	o.p.Timeout = 50 * time.Millisecond
	cancels := o.cancelled(func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusServiceUnavailable) })
	for n := range 255 {
		key := state.Key{Tenant: "default", Gateway: uamp.Name, Realm: "lab", Kind: "withdrawal", Name: fmt.Sprint(n)}
		if _, err := o.rt.State().Put(t.Context(), state.Record{Key: key, Value: []byte("{}"), Expires: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int {
		n := 0
		err := state.Each(t.Context(), o.rt.State(), state.Key{Tenant: "default", Gateway: uamp.Name, Realm: "lab", Kind: "withdrawal"}, func(r state.Record) error {
			n++
			if left := time.Until(r.Expires); left <= 0 || left > time.Hour {
				t.Errorf("a record stays for %s", left)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	for _, id := range []string{"the last", "one too many"} {
		o.givesUp(t, id, cancels)
		if n := count(); n != 256 {
			t.Errorf("%s: %d records", id, n)
		}
	}
}
