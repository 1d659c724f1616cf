package uamp_test

import (
	"fmt"
	"strings"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// answersAsks has the lab do with each ask that comes as a frame what a test wants, and nothing
// with other frames.
func (l *lab) answersAsks(answer func(s *labSocket, e envelope.Signed)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frame = func(s *labSocket, text []byte) bool {
		e, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 64}.Read(text)
		if err == nil && e.Intent == envelope.Ask {
			answer(s, e)
		}
		return true
	}
}

// receipt shows that the lab has an envelope.
func (s *labSocket) receipt(e envelope.Signed, change ...func(*envelope.Envelope)) {
	s.send(s.l.reply(e, envelope.Progress, "application/json", `{"accepted":true}`, change...))
}

// delta sends a delta with what stands before its payload.
func (s *labSocket) delta(seq int, stream, kind, payload string) {
	s.send(fmt.Sprintf(`{"delta_seq":%d,"stream_id":%q,"ts":"2026-01-02T03:04:05Z","type":%q,"payload":%s}`, seq, stream, kind, payload))
}

// answered checks that an agent got one answer.
func (o *out) answered(t *testing.T, want string) {
	t.Helper()
	if asked := o.rec.take(); len(asked) != 1 || asked[0].Kind != gateway.Answers || asked[0].Body != want {
		t.Errorf("%+v, want %q", asked, want)
	}
}

// TestSocketOutReceipt (U-054, U-055, D-U11): a receipt need not name the stream: its deltas have the
// stream_id of the question. One that names another has both names count.
func TestSocketOutReceipt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*envelope.Envelope){
		"no stream":               func(*envelope.Envelope) {},
		"another name":            func(e *envelope.Envelope) { e.Stream = "s 7" },
		"the stream, no reply_to": func(e *envelope.Envelope) { e.Stream, e.ReplyTo = "str-"+string(e.ReplyTo), "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overFrames(t, func(t *testing.T, o *out) {
				o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
					s.receipt(e, change)
					s.delta(0, e.Stream, "chunk", `{"text":"se"}`)
					s.delta(1, e.Stream, "chunk", `{"text":"ven"}`)
					s.delta(2, e.Stream, "done", `{}`)
				})
				o.carry(t, "asked", outgoing("receipt", mail.Request, "x", "how many?"), gateway.Taken)
				o.answered(t, "seven")
			})
		})
	}
}

// TestSocketOutAskedBack (U-054, U-055, U-080, U-089): what a partner sends about our question and is
// no answer, as a question of its own or an event, does not end it, wherever it comes.
func TestSocketOutAskedBack(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("after the receipt ", late), func(t *testing.T) {
			t.Parallel()
			overFrames(t, func(t *testing.T, o *out) { testSocketOutAskedBack(t, o, late) })
		})
	}
}

func testSocketOutAskedBack(t *testing.T, o *out, late bool) {
	o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
		if late {
			s.receipt(e)
			s.delta(0, e.Stream, "chunk", `{"text":"se"}`)
		}
		s.send(s.l.reply(e, envelope.Ask, "text/plain", "how many of what?"))
		s.send(s.l.reply(e, envelope.Notify, "text/plain", "begun"))
		if late {
			s.delta(1, e.Stream, "chunk", `{"text":"ven"}`)
			s.delta(2, e.Stream, "done", `{}`)
			return
		}
		s.send(s.l.reply(e, envelope.Confirm, "text/plain", "seven"))
	})
	o.carry(t, "asked", outgoing("asked back", mail.Request, "x", "how many?"), gateway.Taken)
	bodies := map[gateway.Kind]string{}
	for _, a := range o.rec.take() {
		bodies[a.Kind] += a.Body
	}
	if bodies[gateway.Answers] != "seven" || bodies[gateway.Asks] != "how many of what?" || bodies[gateway.Tells] != "begun" {
		t.Errorf("%v", bodies)
	}
}

// TestSocketOutNamed (U-054, U-055, D-U11): an answer names its question by reply_to, by the stream's
// name alone, the question's or the receipt's, or by context.
func TestSocketOutNamed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*envelope.Envelope){
		"reply_to":   func(e *envelope.Envelope) { e.Stream = "" },
		"its stream": func(e *envelope.Envelope) { e.ReplyTo = "" },
		"the partner's stream": func(e *envelope.Envelope) {
			e.ReplyTo, e.Stream = "", "s 7"
		},
		"context": func(e *envelope.Envelope) {
			e.Context = []envelope.Reference{{ID: e.ReplyTo, Hash: "sha256:" + strings.Repeat("0", 64)}}
			e.ReplyTo, e.Stream = "", ""
		},
	} {
		for _, bare := range []bool{false, true} {
			if bare && name == "the partner's stream" {
				continue
			}
			t.Run(fmt.Sprint(name, " without a receipt ", bare), func(t *testing.T) {
				t.Parallel()
				overFrames(t, func(t *testing.T, o *out) { testSocketOutNamed(t, o, bare, change) })
			})
		}
	}
}

func testSocketOutNamed(t *testing.T, o *out, bare bool, change func(*envelope.Envelope)) {
	o.lab.answersAsks(func(s *labSocket, e envelope.Signed) {
		if !bare {
			s.receipt(e, func(r *envelope.Envelope) { r.Stream = "s 7" })
		}
		s.send(s.l.reply(e, envelope.Confirm, "text/plain", "seven", func(r *envelope.Envelope) { r.Stream = e.Stream; change(r) }))
	})
	o.carry(t, "asked", outgoing("named", mail.Request, "x", "how many?"), gateway.Taken)
	o.answered(t, "seven")
}
