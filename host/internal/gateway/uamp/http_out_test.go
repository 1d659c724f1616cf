package uamp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// TestHTTPOutProgress (U-050, U-080, U-084): progress in a response is no answer, nor is a question of
// the partner. The stream is at Location, or under the name that the progress or the question has.
func TestHTTPOutProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		location, path string
		intent         envelope.Intent
		change         func(*envelope.Envelope)
	}{
		"Location":         {"/v1/stream/s%201", "/v1/stream/s%201", envelope.Progress, func(*envelope.Envelope) {}},
		"its stream_id":    {"", "/v1/stream/s%207", envelope.Progress, func(e *envelope.Envelope) { e.Stream = "s 7" }},
		"the question's":   {"", "", envelope.Progress, func(*envelope.Envelope) {}},
		"a question of it": {"/v1/stream/s%201", "/v1/stream/s%201", envelope.Ask, func(*envelope.Envelope) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOut(t)
			want := c.path
			o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
				if c.location != "" {
					w.Header().Set("Location", c.location)
				}
				if want == "" {
					want = "/v1/stream/" + s.Stream
				}
				o.lab.answers(http.StatusAccepted, c.intent, "application/json", `{"pct":10}`, c.change)(w, s)
			}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.EscapedPath() != want {
					t.Errorf("%s, want %s", r.URL.EscapedPath(), want)
				}
				events(9, done)(w, r)
			})
			o.carry(t, "asked", outgoing("progress", mail.Request, "x", "how many?"), gateway.Taken)
			bodies := map[gateway.Kind]string{}
			for _, a := range o.rec.take() {
				bodies[a.Kind] += a.Body
			}
			if bodies[gateway.Answers] != "seven" || (bodies[gateway.Asks] != "") != (c.intent == envelope.Ask) {
				t.Errorf("%v", bodies)
			}
		})
	}
}

// TestEmptyProgress: progress without a text and a percentage, as in a receipt, is shown to no
// reader.
func TestEmptyProgress(t *testing.T) {
	t.Parallel()
	overBindings(t, func(t *testing.T, o *out) {
		told := `{"delta_seq":%d,"type":"progress","payload":`
		o.lab.does(streamAt, events(9, told+`{"accepted":true}}`, told+`{"pct":-1,"text":""}}`, told+`{"pct":0}}`, `{"delta_seq":%d,"type":"done","payload":{"answer":"seven"}}`))
		o.carry(t, "asked", outgoing("empty", mail.Request, "x", "how many?"), gateway.Taken)
		if shown := o.rt.Shown(); len(shown) != 1 || shown[0].Piece.Fraction == nil || *shown[0].Piece.Fraction != 0 {
			t.Errorf("%+v", shown)
		}
	})
}

// TestOutRepeat (U-026, U-050, D-U11): a partner that has an envelope, and refuses its repeat since the
// stream is in use or the id is, shows the first one's stream.
func TestOutRepeat(t *testing.T) {
	t.Parallel()
	overBindings(t, func(t *testing.T, o *out) {
		server := serveClear(t, o.lab)
		o.p.URL = server.URL
		d := outgoing("repeat", mail.Request, "x", "how many?")
		o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) {
			go server.CloseClientConnections() // before its receipt
			w.WriteHeader(http.StatusInternalServerError)
		}, nil)
		o.carry(t, "asked", d, gateway.Unanswered)
		o.lab.does(o.lab.answers(http.StatusConflict, envelope.Error, "application/json", `{"code":"4.09","message":"the stream_id is in use","retry":true}`), events(9, chunk("se"), chunk("ven"), `{"delta_seq":%d,"type":"done"}`))
		got := o.g.Carry(t.Context(), o.p, d)
		for got.State == gateway.Unanswered { // its connection was closed, too
			got = o.g.Carry(t.Context(), o.p, d)
		}
		if got.State != gateway.Taken {
			t.Errorf("asked again: %+v", got)
		}
		o.answered(t, "seven")
	})
}

// TestEventLines (U-051): a partner's events may begin with a byte order mark, and their lines end with
// CR, LF or both; an event is taken when it is whole.
func TestEventLines(t *testing.T) {
	t.Parallel()
	const first, last = `{"delta_seq":0,"type":"chunk","payload":{"text":"se"}}`, `{"delta_seq":1,"type":"done","payload":{"answer":"seven"}}`
	for name, body := range map[string]string{
		"LF":               "data: " + first + "\n\ndata: " + last + "\n\n",
		"CR":               "data: " + first + "\r\rdata: " + last + "\r\r",
		"CRLF":             "data: " + first + "\r\n\r\ndata: " + last + "\r\n\r\n",
		"mixed":            ":hello\rid: 0\ndata: " + first + "\r\n\rretry: 5\r\n\ndata: " + last + "\n\r\n",
		"mark":             "\xEF\xBB\xBFdata:" + first + "\n\ndata:" + last + "\n\n",
		"lines of data":    "data: {\ndata:" + first[1:] + "\n\ndata: " + last + "\n\n",
		"events without":   "data\n\nevent: ping\ndata:\n\ndata: " + first + "\n\n\n\ndata: " + last + "\n\n",
		"a name of theirs": "event: delta\ndata: " + first + "\n\nevent: delta\ndata: " + last + "\n\n",
	} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " byte by byte ", apart), func(t *testing.T) {
				t.Parallel()
				o := newOut(t)
				o.p.URL = serveClear(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method != http.MethodGet || !strings.HasPrefix(r.URL.Path, "/v1/stream/") {
						o.lab.ServeHTTP(w, r)
						return
					}
					w.Header().Set("Content-Type", "text/event-stream")
					for n := range len(body) {
						if apart || n == len(body)-1 {
							_, _ = io.WriteString(w, body[n:n+1])
							_ = http.NewResponseController(w).Flush()
						} else {
							_, _ = io.WriteString(w, body[n:n+1])
						}
					}
					<-r.Context().Done() // the last event ends it
				})).URL
				o.lab.does(streamAt, nil)
				o.carry(t, "asked", outgoing("lines", mail.Request, "x", "how many?"), gateway.Taken)
				o.answered(t, "seven")
			})
		}
	}
}

// TestUnreadableStream (U-060, U-063, U-068, V-U27): the reason of an envelope whose stream cannot be read
// names the stream, the delta and what is wrong with it.
func TestUnreadableStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deltas []string
		want   []string
	}{
		"no JSON":       {[]string{chunk("a"), `{"delta_seq":%d,`}, []string{"at delta 1", "{\\\"delta_seq\\\":1,"}},
		"no known type": {[]string{`{"delta_seq":%d,"type":"begin"}`}, []string{"at delta 0", "type is none of patch", "begin"}},
		"no number":     {[]string{chunk("a"), `{"type":"chunk","payload":{"n":%d}}`}, []string{"at delta 1", "delta_seq is missing"}},
		"a gap":         {[]string{chunk("a"), `{"delta_seq":7,"type":"chunk","payload":{"n":%d}}`}, []string{"at delta 1", "a delta is missing", "7"}},
		"another stream": {
			[]string{strings.Replace(done, "done", "progress", 1), strings.Replace(done, "s 1", "s 2", 1)},
			[]string{"at delta 1", `its stream_id is "s 2", and the deltas before it have "s 1"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOut(t)
			o.p.Timeout = 100 * time.Millisecond
			o.lab.does(streamAt, events(9, c.deltas...))
			var got gateway.Carried
			for n := 0; !strings.Contains(got.Reason, "at delta") && n < 100; n++ { // on a slow machine the time may be over before a delta is read
				got = o.carry(t, "asked", outgoing(fmt.Sprint("unreadable ", n), mail.Request, "x", "how many?"), gateway.Refused)
			}
			for _, want := range append(c.want, "/v1/stream/s%201", labDID) {
				if !strings.Contains(got.Reason, want) {
					t.Errorf("%q has not %q", got.Reason, want)
				}
			}
		})
	}
}

// TestNoEventStream (U-051): what is no stream of events is named in the reason.
func TestNoEventStream(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.p.Timeout = 100 * time.Millisecond
	o.lab.does(streamAt, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>Log in</p>")
	})
	err := errors.New("")
	for n := 0; !strings.Contains(err.Error(), "text/html") && n < 100; n++ {
		err = errors.New(o.carry(t, "asked", outgoing(fmt.Sprint("html ", n), mail.Request, "x", "how many?"), gateway.Refused).Reason)
	}
	if !strings.Contains(err.Error(), `it is no stream of events: its Content-Type is "text/html"`) {
		t.Error(err)
	}
}
