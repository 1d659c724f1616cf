package uamp_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/wire"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// asking sends a request to the lab, whose answer is to come by an envelope of its own, and
// returns the envelope and what becomes of the request.
func (o *out) asking(t *testing.T, id string) (envelope.Signed, <-chan gateway.Carried) {
	t.Helper()
	asked, carried := make(chan envelope.Signed, 1), make(chan gateway.Carried, 1)
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		w.WriteHeader(http.StatusAccepted)
		if s.Intent == envelope.Ask {
			asked <- s
		}
	}, nil)
	go func() { carried <- o.g.Carry(t.Context(), o.p, outgoing(id, mail.Request, "x", "how many?")) }()
	return <-asked, carried
}

// about is an envelope of the lab about one of ours.
func about(s envelope.Signed, intent envelope.Intent, text string) envelope.Envelope {
	e := newAsk("", text)
	e.Intent, e.ReplyTo, e.To = intent, s.ID, []string{s.From}
	return e
}

// TestAnswerByEnvelope (U-083, U-084, U-087, U-089, U-091, G-024): an answer comes by an envelope, from the
// agent that was asked, once. A second one that is like it changes nothing.
func TestAnswerByEnvelope(t *testing.T) {
	t.Parallel()
	for intent, want := range map[envelope.Intent]string{envelope.Confirm: "", envelope.Inform: "", envelope.Deny: "[DENIED]", envelope.Error: "[5.00]"} {
		t.Run(string(intent), func(t *testing.T) {
			t.Parallel()
			o := newOut(t)
			ask, carried := o.asking(t, "e1")
			other := about(ask, intent, "mine")
			other.From = "did:web:lab.example:agents:y"
			if r := o.post(t, "lab-token", signedBy(t, o.own.WithID(other.From+"#k"), other)); r.status != http.StatusForbidden {
				t.Errorf("of another agent: %d", r.status)
			}
			if r := o.send(t, about(ask, envelope.Cancel, "")); r.status != http.StatusForbidden { // U-092
				t.Errorf("a cancel of another's: %d", r.status)
			}
			o.take(t, about(ask, envelope.Progress, "half"))
			o.take(t, about(ask, intent, "seven"))
			if got := <-carried; got.State != gateway.Taken {
				t.Errorf("%+v", got)
			}
			asked := o.rec.take()
			if len(asked) != 1 || asked[0].Kind != gateway.Answers || asked[0].Subject != want || asked[0].Body != "seven" || asked[0].Of.Wrapper.Payload.ID != "request-e1" || !asked[0].Sent {
				t.Errorf("%+v", asked)
			}
			if shown := o.rt.Shown(); len(shown) != 1 || shown[0].Piece.Text != "half" {
				t.Errorf("%+v", shown)
			}
			if again := about(ask, intent, "eight"); intent != envelope.Inform {
				o.take(t, again)
				if asked := o.rec.take(); len(asked) > 0 {
					t.Errorf("a second answer: %+v", asked)
				}
			}
			opposite := map[bool]envelope.Intent{true: envelope.Confirm, false: envelope.Error}[want != ""]
			if r := o.send(t, about(ask, opposite, "no")); r.status != http.StatusUnprocessableEntity {
				t.Errorf("the opposite: %d %s", r.status, r.text)
			}
		})
	}
	o := newOut(t)
	stray := newAsk("calc", "four")
	stray.Intent, stray.ReplyTo = envelope.Confirm, envelope.NewID()
	o.refused(t, "an answer to nothing", o.send(t, stray), envelope.UnknownRecipient)
}

// TestForeignQuestion (U-080, U-081): a foreign agent asks and tells about our question: that
// reaches the task that has sent it.
func TestForeignQuestion(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	ask, carried := o.asking(t, "q1")
	question := o.take(t, about(ask, envelope.Ask, "which colour?"))
	if !strings.HasPrefix(question.location, "/v1/stream/str-") {
		t.Error(question.location)
	}
	o.take(t, about(ask, envelope.Notify, "by the way"))
	asked := o.rec.take()
	if len(asked) != 2 || asked[0].Kind != gateway.Asks || !asked[0].Reply || asked[0].Body != "which colour?" || asked[1].Kind != gateway.Tells || asked[1].Of.Wrapper.Payload.TaskID != "t" {
		t.Errorf("%+v", asked)
	}
	o.rt.Admit("other-token", gatewaytest.Realm("default", "other"))
	o.rt.AddPartner(gateway.Partner{Name: "other", Tenant: "default", IDs: o.p.IDs, Options: o.p.Options})
	if r := o.post(t, "other-token", signedBy(t, o.own, about(ask, envelope.Confirm, "mine"))); r.status != http.StatusNotFound {
		t.Errorf("another realm: %d", r.status)
	}
	o.take(t, about(ask, envelope.Confirm, "seven"))
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
}

// response is the outbox message with the answer of our agent to an envelope.
func response(e envelope.Envelope) swarm.Delivery {
	d := outgoing("response "+string(e.ID), mail.Response, "x", "")
	d.Answers = swarm.RemoteKey("lab", string(e.ID))
	return d
}

// TestConfirm (U-089, D-U21): the answer of our agent is also sent as an envelope, with the
// hash of what the last delta of the stream has. What was withdrawn has none.
func TestConfirm(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	answers := make(chan gateway.Answer, 1)
	o.expose("calc", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turn.Chunk("piece")
		return <-answers
	})
	for name, c := range map[string]struct {
		asked   envelope.Intent
		answer  gateway.Answer
		want    envelope.Intent
		content string
	}{
		"an answer":    {envelope.Ask, gateway.Answer{Body: "4"}, envelope.Confirm, "4"},
		"a failure":    {envelope.Ask, gateway.Answer{Outcome: gateway.Failed, Body: "oh"}, envelope.Error, `{"code":"5.00","message":"oh","retry":true}`},
		"over":         {envelope.Ask, gateway.Answer{Outcome: gateway.TimedOut, Body: "oh"}, envelope.Error, `{"code":"4.08","message":"oh","retry":false}`},
		"an agreement": {envelope.Propose, gateway.Answer{Subject: "fine", Body: "tea"}, envelope.Confirm, "tea"},
		"a no":         {envelope.Propose, gateway.Answer{Subject: "Deny", Body: "no tea"}, envelope.Deny, "no tea"},
	} {
		e := newAsk("calc", "2+2")
		e.Intent = c.asked
		answers <- c.answer
		stream := o.take(t, e).location
		lines := o.read(t, stream)
		for range 2 {
			o.carry(t, name, response(e), gateway.Taken)
		}
		got, _ := o.lab.take()
		if len(got) != 1 {
			t.Fatalf("%s: %d envelopes", name, len(got))
		}
		sent := got[0]
		if sent.Intent != c.want || sent.ReplyTo != e.ID || sent.From != agentDID("calc") || sent.To[0] != labDID || sent.Body.Content != c.content || "/v1/stream/"+sent.Stream != stream {
			t.Errorf("%s: %+v", name, sent.Envelope)
		}
		text, err := wire.Canonical(delta(t, lines[len(lines)-1]).Payload, wire.RFC8785, 10)
		if want := fmt.Sprintf(`"%x"`, sha256.Sum256(text)); err != nil || string(sent.Ext["x-answer-sha256"]) != want {
			t.Errorf("%s: %s, want %s", name, sent.Ext["x-answer-sha256"], want)
		}
	}
	cancelled := newAsk("slow", "x")
	o.take(t, cancelled)
	withdraw := newAsk("slow", "")
	withdraw.Intent, withdraw.ReplyTo = envelope.Cancel, cancelled.ID
	o.take(t, withdraw)
	o.carry(t, "cancelled", response(cancelled), gateway.Taken)
	if got, _ := o.lab.take(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	o.carry(t, "unknown", response(newAsk("calc", "x")), gateway.Refused)
}

// TestConfirmedSum (D-U21): a confirm with a hash is no answer by itself: it says what the
// stream must have had.
func TestConfirmedSum(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.lab.does(streamAt, events(9, done))
	o.carry(t, "a request", outgoing("s1", mail.Request, "x", "how many?"), gateway.Taken)
	got, _ := o.lab.take()
	sum := sha256.Sum256([]byte(`{"answer":"seven"}`))
	for text, status := range map[string]int{fmt.Sprintf("%x", sum): http.StatusAccepted, strings.Repeat("0", 64): http.StatusUnprocessableEntity} {
		e := about(got[0], envelope.Confirm, "seven")
		e.Ext = map[string]json.RawMessage{"x-answer-sha256": json.RawMessage(`"` + text + `"`)}
		if r := o.send(t, e); r.status != status {
			t.Errorf("%s: %d %s", text, r.status, r.text)
		}
	}
	if asked := o.rec.take(); len(asked) != 1 {
		t.Errorf("%+v", asked)
	}
}

// TestCancelOut (U-085, U-092): an interrupt that cancels withdraws the envelope that waits.
// What was given up takes no answer.
func TestCancelOut(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	cancel := outgoing("i1", mail.Interrupt, "x", "stop")
	cancel.Wrapper.Payload.Subject = "Cancel it"
	o.carry(t, "nothing waits", cancel, gateway.Taken)
	if got, _ := o.lab.take(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	ask, carried := o.asking(t, "w1")
	o.carry(t, "an interrupt", cancel, gateway.Taken)
	got, _ := o.lab.take()
	if len(got) != 2 || got[1].Intent != envelope.Cancel || got[1].ReplyTo != ask.ID {
		t.Fatalf("%d envelopes", len(got))
	}
	o.take(t, about(ask, envelope.Error, "stopped"))
	if got := <-carried; got.State != gateway.Taken {
		t.Errorf("%+v", got)
	}
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(http.StatusForbidden) }, nil)
	o.carry(t, "given up", outgoing("given up", mail.Request, "x", "how many?"), gateway.Refused)
	got, _ = o.lab.take()
	if r := o.send(t, about(got[0], envelope.Confirm, "at last")); r.status != http.StatusNotFound {
		t.Errorf("a late answer: %d", r.status)
	}
	o.p.Timeout = time.Millisecond
	if got := o.carry(t, "no answer", outgoing("late", mail.Request, "x", "how many?"), gateway.Refused); !strings.Contains(got.Reason, "raise timeout in [gateways.uamp.partners.lab]") && !strings.Contains(got.Reason, "403") {
		t.Errorf("%+v", got)
	}
}

// TestAskBack (U-080): what an agent asks its caller is an envelope about the caller's.
func TestAskBack(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	e := newAsk("slow", "x")
	o.take(t, e)
	d := outgoing("back", mail.Request, "did:web:lab.example:agents:x", "red or blue?")
	d.Answers = swarm.RemoteKey("lab", string(e.ID))
	o.lab.does(o.lab.answers(200, envelope.Confirm, "text/plain", "red"), nil)
	o.carry(t, "a question", d, gateway.Taken)
	got, _ := o.lab.take()
	if len(got) != 1 || got[0].ReplyTo != e.ID || got[0].Intent != envelope.Ask || len(got[0].Context) != 1 || got[0].To[0] != labDID {
		t.Fatalf("%+v", got)
	}
	if asked := o.rec.take(); len(asked) != 1 || asked[0].Body != "red" {
		t.Errorf("%+v", asked)
	}
}

// TestRecipients: the name before @ is the last part of a DID of the partner, or the DID.
func TestRecipients(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.p.IDs = []string{"did:key:z6Mkexact", "did:web:lab.example:agents:*"}
	for name, want := range map[string]string{
		"x": labDID, "z6Mkexact": "did:key:z6Mkexact", labDID: labDID, "did:web:shop.example": "",
	} {
		state := gateway.Taken
		if want == "" {
			state = gateway.Refused
		}
		o.carry(t, name, outgoing("to "+name, mail.Broadcast, name, "news"), state)
		if got, _ := o.lab.take(); want != "" && (len(got) != 1 || got[0].To[0] != want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	o.p.URL, o.p.Client = "", nil
	o.carry(t, "without a url", outgoing("u", mail.Broadcast, "x", "news"), gateway.Refused)
}

// TestConfirmBeforeTheEnd (D-U21, U-089): a confirm with a hash that comes before the stream's
// end is compared with what the stream has then.
func TestConfirmBeforeTheEnd(t *testing.T) {
	t.Parallel()
	right := fmt.Sprintf("%x", sha256.Sum256([]byte(`{"answer":"seven"}`)))
	for sum, want := range map[string]gateway.CarriedState{right: gateway.Taken, strings.Repeat("0", 64): gateway.Refused} {
		o := newOut(t)
		var sent envelope.Signed
		o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
			sent = s
			streamAt(w, s)
		}, func(w http.ResponseWriter, r *http.Request) {
			for _, named := range []string{sum, sum, strings.Repeat("1", 64)} { // again, and another one
				e := about(sent, envelope.Confirm, "seven")
				e.Ext = map[string]json.RawMessage{"x-answer-sha256": json.RawMessage(`"` + named + `"`)}
				status := http.StatusAccepted
				if named != sum {
					status = http.StatusUnprocessableEntity
				}
				if r := o.send(t, e); r.status != status {
					t.Errorf("%s: %d %s", named, r.status, r.text)
				}
			}
			events(9, done)(w, r)
		})
		o.carry(t, sum, outgoing("before "+sum, mail.Request, "x", "how many?"), want)
		if asked := o.rec.take(); (len(asked) == 1) != (want == gateway.Taken) {
			t.Errorf("%s: %+v", sum, asked)
		}
	}
}
