package uamp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// TestSocketOutLost (U-054, U-055, U-056): a question whose connection is lost after the receipt is
// sent again where the partner writes no stream for its acknowledgement, and has one answer.
func TestSocketOutLost(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(s *labSocket, e envelope.Signed){
		"the repeat is taken": func(s *labSocket, e envelope.Signed) { s.receipt(e) },
		"the repeat is refused": func(s *labSocket, e envelope.Signed) {
			s.send(s.l.reply(e, envelope.Error, "application/json", `{"code":"4.22","message":"the id is known"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overFrames(t, func(t *testing.T, o *out) {
				var asks atomic.Int32
				o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
					if asks.Add(1) == 1 {
						s.receipt(e)
						s.shut(websocket.StatusInternalError, "the lab falls")
						return
					}
					again(s, e)
					s.delta(0, e.Stream, "chunk", `{"text":"se"}`)
					s.delta(1, e.Stream, "chunk", `{"text":"ven"}`)
					s.delta(2, e.Stream, "done", `{}`)
					s.delta(2, e.Stream, "done", `{"answer":"eight"}`)
					s.send(s.l.reply(e, envelope.Confirm, "text/plain", "seven"))
				})
				d := outgoing("lost", mail.Request, "x", "how many?")
				for n := 0; n < 9 && o.g.Carry(t.Context(), o.p, d).State != gateway.Taken; n++ {
				}
				o.answered(t, "seven")
				if n := asks.Load(); n != 2 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// TestOtherBinding (U-056, V-U28): a stream that was begun on one binding is read on by another after
// the operator has changed the partner's.
func TestOtherBinding(t *testing.T) {
	t.Parallel()
	all := []string{"http", "websocket", "grpc"}
	for _, from := range all {
		for _, to := range all {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				o := newOut(t)
				testOtherBinding(t, o, from, to)
			})
		}
	}
}

func testOtherBinding(t *testing.T, o *out, from, to string) {
	d := outgoing("other binding", mail.Request, "x", "how many?")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	deltas := []string{chunk("se"), chunk("ven"), `{"delta_seq":%d,"type":"done"}`}
	o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") == "" {
			events(1, deltas...)(w, r)
			return
		}
		for len(o.rt.Shown()) < 1 && t.Context().Err() == nil { // the host has the first, and the stream's address
			time.Sleep(time.Millisecond)
		}
		stop()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	o.p.Options["binding"] = from
	o.rt.AddPartner(o.p)
	if got := o.g.Carry(ctx, o.p, d); got.State != gateway.Unanswered {
		t.Fatalf("%+v", got)
	}
	o.lab.does(streamAt, events(9, deltas...))
	o.p.Options["binding"] = to
	o.rt.AddPartner(o.p)
	o.carry(t, "by another binding", d, gateway.Taken)
	o.answered(t, "seven")
	if got, _ := o.lab.take(); len(got) != 1 {
		t.Errorf("%d envelopes", len(got))
	}
}

// TestSocketOutWrongSigner (U-040, U-054, U-055): an answer beside a stream that another key has signed,
// or that another agent has sent, is none. The reason of a question without another names it.
func TestSocketOutWrongSigner(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, o *out, text string) string{
		"another key": func(t *testing.T, _ *out, text string) string {
			t.Helper()
			return strings.Replace(text, "eight", "nine!", 1)
		},
		"another agent": func(t *testing.T, o *out, text string) string {
			t.Helper()
			e, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read([]byte(text))
			if err != nil {
				t.Error(err)
			}
			e.From = "did:web:lab.example:agents:y"
			return signedBy(t, o.own, e.Envelope)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overFrames(t, func(t *testing.T, o *out) {
				o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
					s.receipt(e)
					s.send(change(t, o, s.l.reply(e, envelope.Confirm, "text/plain", "eight")))
					s.delta(0, e.Stream, "done", `{"answer":"seven"}`)
				})
				o.carry(t, "asked", outgoing("signer", mail.Request, "x", "how many?"), gateway.Taken)
				o.answered(t, "seven")
				o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
					s.receipt(e)
					s.send(change(t, o, s.l.reply(e, envelope.Confirm, "text/plain", "eight")))
				})
				o.p.Timeout = 100 * time.Millisecond
				var got gateway.Carried
				for n := 0; n < 100 && !strings.Contains(got.Reason, "does not count"); n++ {
					got = o.carry(t, "asked", outgoing(fmt.Sprint("no other ", n), mail.Request, "x", "how many?"), gateway.Refused)
				}
				if !strings.Contains(got.Reason, "an envelope about it does not count") {
					t.Error(got.Reason)
				}
			})
		})
	}
}
