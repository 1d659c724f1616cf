package uamp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// inMemory has the lab answer without a connection, so that the time of a bubble goes on.
type inMemory struct{ http.Handler }

// RoundTrip implements [http.RoundTripper].
func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestFollowPace (U-050, U-065): a stream that a partner does not show, with and without a Location, is asked
// for more and more seldom, and not before the time that the partner wants. The reason of its question has
// what was wrong.
func TestFollowPace(t *testing.T) {
	t.Parallel()
	fails := func(code int, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", retryAfter)
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		stream http.HandlerFunc
		most   int // requests in ten minutes
		reason string
	}{
		"fails":             {fails(http.StatusInternalServerError, ""), 64, "the partner answers 500"},
		"busy":              {fails(http.StatusServiceUnavailable, "120"), 6, "the partner answers 503"},
		"too many requests": {fails(http.StatusTooManyRequests, "300"), 3, "the partner answers 429"},
		"bad gateway":       {fails(http.StatusBadGateway, "60"), 11, "the partner answers 502"},
		"empty":             {events(9), 64, "did not answer within 10m"},
		"not found":         {fails(http.StatusNotFound, ""), 1, "it has told no Location, and of the stream"},
		"denied":            {fails(http.StatusForbidden, ""), 1, "the partner does not show the stream"},
	} {
		for _, named := range []bool{true, false} {
			if named && c.most == 1 {
				continue // another attempt asks for it, see TestStreamGone
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := newUnstartedOut(t)
					o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
						if named && s.Intent == envelope.Ask {
							w.Header().Set("Location", "/v1/stream/s%201")
						}
						w.WriteHeader(http.StatusAccepted)
					}, c.stream)
					got := o.carry(t, "asked", outgoing("m1", mail.Request, "x", "how many?"), gateway.Refused)
					_, streams := o.lab.take()
					if len(streams) > c.most || len(streams) == 0 || !strings.Contains(got.Reason, c.reason) {
						t.Errorf("named %v: %d requests, %s", named, len(streams), got.Reason)
					}
				})
			})
		}
	}
}

// newUnstartedOut is an out whose hive and lab have no listener. The lab has ten minutes.
func newUnstartedOut(t *testing.T, change ...func(*uamp.Options)) *out {
	t.Helper()
	o := newOutOf(t, newUnstartedHive, change...)
	o.p, _ = o.rec.Partner("lab")
	o.p.URL, o.p.Client, o.p.Timeout = "https://lab.example", &http.Client{Transport: inMemory{o.lab}}, 10*time.Minute
	o.rt.AddPartner(o.p)
	return o
}

// TestStreamGone (U-050): an envelope whose stream is gone is sent again, for another one. Where the partner
// refuses the repeat the stream that it has told before is looked for again.
func TestStreamGone(t *testing.T) {
	t.Parallel()
	overBindings(t, func(t *testing.T, o *out) {
		gone := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
		d := outgoing("begun", mail.Request, "x", "how many?")
		for range 3 {
			shown := false
			o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
				if shown {
					gone(w, r)
					return
				}
				shown = true
				events(1, chunk("se"))(w, r)
			})
			if got := o.carry(t, "begun", d, gateway.Unanswered); !strings.Contains(got.Reason, "no more") {
				t.Errorf("%+v", got)
			}
		}
		o.lab.does(streamAt, events(9, chunk("se"), chunk("ven"), `{"delta_seq":%d,"type":"done"}`))
		o.carry(t, "at last", d, gateway.Taken)
		o.answered(t, "seven")
		d = outgoing("refused", mail.Request, "x", "how many?")
		o.lab.does(streamAt, gone)
		o.carry(t, "the first", d, gateway.Unanswered)
		looks := 0
		o.lab.does(o.lab.answers(http.StatusConflict, envelope.Error, "application/json", `{"code":"4.09","message":"the stream_id is in use","retry":true}`), func(w http.ResponseWriter, r *http.Request) {
			if looks++; looks == 1 {
				gone(w, r)
				return
			}
			events(9, chunk("eight"), `{"delta_seq":%d,"type":"done"}`)(w, r)
		})
		o.carry(t, "the repeat", d, gateway.Taken)
		o.answered(t, "eight")
	})
}

// TestStreamLate: a partner that takes an envelope again and again, and shows no stream for it, ends
// the question with the reason after ten seconds. A stream that it shows before brings its answer.
func TestStreamLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newUnstartedOut(t)
		for _, name := range []string{"late", "too late"} {
			o.lab.does(streamAt, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
			d := outgoing(name, mail.Request, "x", "how many?")
			for range 3 {
				o.carry(t, name, d, gateway.Unanswered)
				time.Sleep(3 * time.Second)
			}
			if name == "late" {
				o.lab.does(streamAt, events(9, chunk("seven"), `{"delta_seq":%d,"type":"done"}`))
				o.carry(t, name, d, gateway.Taken)
				o.answered(t, "seven")
				continue
			}
			time.Sleep(time.Second)
			if got := o.carry(t, name, d, gateway.Refused); !strings.Contains(got.Reason, "the partner takes the envelope, and has had no stream for it for 10s") {
				t.Errorf("%+v", got)
			}
		}
	})
}

// TestRedirect: a partner that redirects an envelope, or the request for its stream, is refused at once with
// the reason. One that redirects a manifest has none.
func TestRedirect(t *testing.T) {
	t.Parallel()
	o := newUnstartedOut(t)
	o.p.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return gateway.ErrRedirect }
	away := func(w http.ResponseWriter) {
		w.Header().Set("Location", "https://other.example/")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	o.lab.manifest = func(w http.ResponseWriter, _ *http.Request) { away(w) }
	o.lab.does(streamAt, events(9, chunk("seven"), `{"delta_seq":%d,"type":"done"}`))
	o.carry(t, "manifest", outgoing("manifest", mail.Request, "x", "how many?"), gateway.Taken)
	o.answered(t, "seven")
	o.lab.does(streamAt, func(w http.ResponseWriter, _ *http.Request) { away(w) })
	const reason = "it redirects, which is not followed; write where it is into url"
	if got := o.carry(t, "stream", outgoing("stream", mail.Request, "x", "how many?"), gateway.Refused); !strings.Contains(got.Reason, "cannot be read at delta 0") || !strings.Contains(got.Reason, reason) {
		t.Errorf("%+v", got)
	}
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) { away(w) }, nil)
	if got := o.carry(t, "envelope", outgoing("envelope", mail.Request, "x", "how many?"), gateway.Refused); !strings.Contains(got.Reason, reason) {
		t.Errorf("%+v", got)
	}
}

// TestSubscriptionPace: a partner that wants a day until the events of a subscription are read again has less
// than two requests in a minute, and a task that ends meanwhile is noticed.
func TestSubscriptionPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newUnstartedOut(t, withTenants)
		o.lab.does(streamAt, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		end := runs(t, o.g)
		o.carry(t, "tea", subscribing("tea", "subscribe", `,"topic":"tea"`), gateway.Taken)
		time.Sleep(20 * time.Minute)
		if _, reads := o.lab.take(); len(reads) < 10 || len(reads) > 40 {
			t.Errorf("%d requests in 20 minutes", len(reads))
		}
		o.rt.CloseRequest("request-tea")
		time.Sleep(3 * time.Minute)
		if sent, _ := o.lab.take(); len(sent) != 1 || sent[0].Intent != envelope.Cancel || o.subscriptions(t) != 0 {
			t.Errorf("after the task: %d envelopes, %d subscriptions", len(sent), o.subscriptions(t))
		}
		end()
	})
}
