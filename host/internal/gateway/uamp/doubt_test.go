package uamp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// status answers with a status alone.
func status(code int) func(http.ResponseWriter, envelope.Signed) {
	return func(w http.ResponseWriter, _ envelope.Signed) { w.WriteHeader(code) }
}

// TestStaleRepeat (U-016, U-087): a repeat that the partner refuses as too old has not
// arrived before: it is sent with another time. Its refusal is no answer.
func TestStaleRepeat(t *testing.T) {
	t.Parallel()
	overBindings(t, testStaleRepeat, func(opt *uamp.Options) { opt.ClockSkew = time.Nanosecond })
}

func testStaleRepeat(t *testing.T, o *out) {
	for _, kind := range []mail.Type{mail.Request, mail.Broadcast} {
		d := outgoing("stale "+string(kind), kind, "x", "how many?")
		o.lab.does(status(http.StatusInternalServerError), nil)
		o.carry(t, "a failing partner", d, gateway.Unanswered)
		o.lab.does(o.lab.answers(http.StatusUnauthorized, envelope.Error, "application/json", `{"code":"4.01","message":"too old"}`), nil)
		o.carry(t, "a repeat that is too old", d, gateway.Later)
		if asked := o.rec.take(); len(asked) > 0 {
			t.Errorf("%s: the refusal is an answer: %+v", kind, asked)
		}
		o.lab.does(streamAt, events(9, done))
		o.carry(t, "with another time", d, gateway.Taken)
		got, _ := o.lab.take()
		if len(got) != 3 || got[0].ID != got[2].ID || !got[0].Time.Equal(got[1].Time) || got[0].Time.Equal(got[2].Time) {
			t.Errorf("%s: %d envelopes", kind, len(got))
		}
		if asked := o.rec.take(); (len(asked) == 1) != (kind == mail.Request) {
			t.Errorf("%s: %+v", kind, asked)
		}
		o.lab.does(o.lab.answers(http.StatusUnauthorized, envelope.Error, "application/json", `{"code":"4.01","message":"who?"}`), nil)
		want := map[mail.Type]gateway.CarriedState{mail.Request: gateway.Taken, mail.Broadcast: gateway.Refused}[kind]
		o.carry(t, "refused at first", outgoing("who "+string(kind), kind, "x", "how many?"), want)
		o.lab.take()
		o.rec.take()
	}
}

// TestRepeatTold (U-081, U-087, U-090): what the partner has taken is not sent again after a host that
// died before its outbox had that: the repeat would have another time under a known id.
func TestRepeatTold(t *testing.T) {
	t.Parallel()
	overBindings(t, testRepeatTold)
}

func testRepeatTold(t *testing.T, o *out) {
	e := newAsk("calc", "2+2")
	stream := o.take(t, e).location
	o.read(t, stream) // it is answered
	for name, d := range map[string]swarm.Delivery{"a tell": outgoing("told", mail.Broadcast, "x", "news"), "an answer": response(e)} {
		o.lab.does(status(http.StatusAccepted), nil)
		o.carry(t, name, d, gateway.Taken)
		o.lab.does(o.lab.answers(http.StatusUnprocessableEntity, envelope.Error, "application/json", `{"code":"4.22","message":"another envelope has this id"}`), nil)
		o.carry(t, "its repeat", d, gateway.Taken)
		if got, _ := o.lab.take(); len(got) != 1 {
			t.Errorf("%s: sent %d times", name, len(got))
		}
	}
}

// TestStoreFailsBeforeSending: an attempt that could not begin has sent nothing, and is no
// attempt in doubt.
func TestStoreFailsBeforeSending(t *testing.T) {
	t.Parallel()
	overBindings(t, testStoreFailsBeforeSending)
}

func testStoreFailsBeforeSending(t *testing.T, o *out) {
	for _, kind := range []mail.Type{mail.Request, mail.Broadcast} {
		for _, method := range []string{"Get", "Put"} {
			o.rec.store.failNext(method, errors.New("the store is away"))
			o.carry(t, string(kind)+" "+method, outgoing("unsent "+method, kind, "x", "news"), gateway.Later)
		}
	}
	if got, _ := o.lab.take(); len(got) > 0 {
		t.Errorf("%d envelopes", len(got))
	}
}

// TestStoreFailsAfterSending (U-087): a store that fails after the partner has taken what is told, or
// while an answer is brought, loses neither.
func TestStoreFailsAfterSending(t *testing.T) {
	t.Parallel()
	overBindings(t, testStoreFailsAfterSending)
}

func testStoreFailsAfterSending(t *testing.T, o *out) {
	away := errors.New("the store is away")
	o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) {
		o.rec.store.failNext("Put", away)
		w.WriteHeader(http.StatusAccepted)
	}, nil)
	o.carry(t, "a tell", outgoing("told", mail.Broadcast, "x", "news"), gateway.Taken)
	o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
		o.rec.failNext(away)
		events(9, done)(w, r)
	})
	o.carry(t, "a request", outgoing("asked", mail.Request, "x", "how many?"), gateway.Taken)
	o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
		o.rec.store.failNext("Put", away)
		events(9, done)(w, r)
	})
	o.carry(t, "the end of a request", outgoing("brought", mail.Request, "x", "how many?"), gateway.Taken)
	if got, _ := o.lab.take(); len(got) != 3 {
		t.Errorf("%d envelopes", len(got))
	}
	if asked := o.rec.take(); len(asked) != 2 || asked[0].Body != "seven" || asked[1].Body != "seven" {
		t.Errorf("%+v", asked)
	}
}

// TestAnsweredAtTheLimit (U-085, U-089): an answer that comes while the envelope is withdrawn
// counts: it was brought, and its message is no dead letter.
func TestAnsweredAtTheLimit(t *testing.T) {
	t.Parallel()
	overBindings(t, testAnsweredAtTheLimit)
}

func testAnsweredAtTheLimit(t *testing.T, o *out) {
	var ask atomic.Pointer[envelope.Signed]
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		w.WriteHeader(http.StatusAccepted)
		if s.Intent == envelope.Ask {
			ask.Store(&s)
		} else if of := ask.Load(); of != nil && of.ID == s.ReplyTo {
			if r := o.send(t, about(*of, envelope.Confirm, "seven")); r.status != http.StatusAccepted {
				t.Errorf("%d %s", r.status, r.text)
			}
		}
	}, nil)
	var got gateway.Carried
	var asked []gateway.Ask
	for n := 0; n < 8 && len(asked) == 0; n++ { // on a slow machine the time may be over before an ask has left
		o.p.Timeout = 50 * time.Millisecond << n
		got = o.g.Carry(t.Context(), o.p, outgoing(fmt.Sprint("limit", n), mail.Request, "x", "how many?"))
		asked = o.rec.take()
	}
	if got.State != gateway.Taken || len(asked) != 1 || asked[0].Body != "seven" {
		t.Errorf("carried %+v, brought %+v", got, asked)
	}
}

// TestAbandoned: envelopes that are in doubt for good make room for later ones, those that
// an attempt may go on with do not.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.lab.does(status(http.StatusInternalServerError), nil)
	const most = 64
	for n := range most {
		o.carry(t, "in doubt", outgoing(fmt.Sprint("doubt ", n), mail.Broadcast, "x", "news"), gateway.Unanswered)
	}
	o.lab.does(nil, nil)
	late := outgoing("late", mail.Broadcast, "x", "news")
	if got := o.carry(t, "one too many", late, gateway.Later); !strings.Contains(got.Reason, "64 envelopes") {
		t.Error(got.Reason)
	}
	for _, r := range o.recordsOf(t, "lab", "conversation") {
		r.Value = regexp.MustCompile(`"until":"[^"]*"`).ReplaceAll(r.Value, []byte(`"until":"2026-01-02T03:04:05Z"`))
		if _, err := o.rt.State().Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	o.carry(t, "later", late, gateway.Taken)
}

// TestAnswerKey: no id of a foreign envelope is the key of an answer, which it would keep out.
func TestAnswerKey(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	ask, carried := o.asking(t, "k1")
	aside := about(ask, envelope.Notify, "by the way")
	aside.ID = "answer-" + ask.ID
	o.take(t, aside)
	o.take(t, about(ask, envelope.Confirm, "seven"))
	<-carried
	if asked := o.rec.take(); len(asked) != 2 || asked[1].Kind != gateway.Answers || asked[1].Body != "seven" {
		t.Errorf("%+v", asked)
	}
}

// TestUncheckedReply (U-027): an answer or a refusal whose signature cannot be checked now, as
// the document of its sender is not to be had, is no refusal of the message.
func TestUncheckedReply(t *testing.T) {
	t.Parallel()
	overBindings(t, testUncheckedReply)
}

func testUncheckedReply(t *testing.T, o *out) {
	o.p.Options = nil
	o.rt.AddPartner(o.p)
	for name, does := range map[string]func(http.ResponseWriter, envelope.Signed){
		"an answer": o.lab.answers(http.StatusOK, envelope.Confirm, "text/plain", "four"),
		"a refusal": o.lab.answers(http.StatusNotFound, envelope.Error, "application/json", `{"code":"4.04","message":"who?"}`),
	} {
		for _, kind := range []mail.Type{mail.Request, mail.Broadcast} {
			o.lab.does(does, nil)
			o.carry(t, name, outgoing(name+string(kind), kind, "x", "2+2"), gateway.Unanswered)
		}
	}
}

// TestErasedMeanwhile: an attempt whose records were erased meanwhile writes none.
func TestErasedMeanwhile(t *testing.T) {
	t.Parallel()
	overBindings(t, testErasedMeanwhile)
}

func testErasedMeanwhile(t *testing.T, o *out) {
	erase := func() {
		for _, r := range o.recordsOf(t, "lab", "conversation") {
			if err := o.rt.State().Delete(t.Context(), r.Key, 0); err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]struct {
		kind   mail.Type
		does   func(http.ResponseWriter, envelope.Signed)
		stream func(http.ResponseWriter, *http.Request)
	}{
		"told": {mail.Broadcast, func(w http.ResponseWriter, _ envelope.Signed) {
			erase()
			w.WriteHeader(http.StatusAccepted)
		}, nil},
		"asked": {mail.Request, func(w http.ResponseWriter, s envelope.Signed) {
			erase()
			streamAt(w, s)
		}, events(9, done)},
		"streamed": {mail.Request, streamAt, func(w http.ResponseWriter, r *http.Request) {
			erase()
			events(9, done)(w, r)
		}},
	} {
		o.lab.does(c.does, c.stream)
		o.carry(t, name, outgoing("erased "+name, c.kind, "x", "how many?"), gateway.Taken)
		if left := o.recordsOf(t, "lab", "conversation"); len(left) > 0 {
			t.Errorf("%s: %s", name, left[0].Value)
		}
	}
}

// TestUnsignedWait (U-104, V-U35): a partner that is busy says when, without an envelope, too.
func TestUnsignedWait(t *testing.T) {
	t.Parallel()
	overBindings(t, testUnsignedWait)
}

func testUnsignedWait(t *testing.T, o *out) {
	for _, code := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		o.lab.does(func(w http.ResponseWriter, _ envelope.Signed) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
		}, nil)
		if got := o.carry(t, "busy", outgoing(fmt.Sprint("busy ", code), mail.Request, "x", "2+2"), gateway.Later); got.Wait != 7*time.Second {
			t.Errorf("%d: %+v", code, got)
		}
	}
}

// TestClockSetBack (U-016): a repeat whose time is ahead, as the clock was set back, gets another
// time as one that is too old does.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	overBindings(t, testClockSetBack)
}

func testClockSetBack(t *testing.T, o *out) {
	d := outgoing("ahead", mail.Request, "x", "how many?")
	o.lab.does(status(http.StatusInternalServerError), nil)
	o.carry(t, "a failing partner", d, gateway.Unanswered)
	for _, r := range o.recordsOf(t, "lab", "conversation") {
		r.Value = regexp.MustCompile(`"since":"\d+`).ReplaceAll(r.Value, []byte(`"since":"2126`))
		if _, err := o.rt.State().Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	o.lab.does(o.lab.answers(http.StatusUnauthorized, envelope.Error, "application/json", `{"code":"4.01","message":"of tomorrow"}`), nil)
	o.carry(t, "a repeat that is ahead", d, gateway.Later)
	o.lab.does(streamAt, events(9, done))
	o.carry(t, "with another time", d, gateway.Taken)
}

// TestMovedPartner: a stream at a host that is the partner's no more is not read: the envelope
// is sent again, to where the partner is now.
func TestMovedPartner(t *testing.T) {
	t.Parallel()
	overBindings(t, testMovedPartner)
}

func testMovedPartner(t *testing.T, o *out) {
	before := serveClear(t, o.lab)
	now := o.p
	o.p.URL = before.URL
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.lab.does(streamAt, func(http.ResponseWriter, *http.Request) { stop() })
	d := outgoing("moved", mail.Request, "x", "how many?")
	if got := o.g.Carry(ctx, o.p, d); got.State != gateway.Unanswered {
		t.Errorf("%+v", got)
	}
	before.CloseClientConnections()
	before.Close()
	o.lab.does(streamAt, events(9, done))
	now.Timeout = time.Minute
	o.p = now
	o.carry(t, "moved", d, gateway.Taken)
	if got, _ := o.lab.take(); len(got) != 2 || got[0].ID != got[1].ID {
		t.Errorf("%d envelopes", len(got))
	}
}

// TestStreamDenied: a partner that does not show the stream any more, as the credential of the
// attempt was replaced meanwhile, has the envelope: another attempt reads on.
func TestStreamDenied(t *testing.T) {
	t.Parallel()
	overBindings(t, testStreamDenied)
}

func testStreamDenied(t *testing.T, o *out) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		d := outgoing(fmt.Sprint("denied ", code), mail.Request, "x", "how many?")
		o.lab.does(streamAt, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		o.carry(t, "with the credential before", d, gateway.Unanswered)
		o.lab.does(nil, events(9, done))
		o.carry(t, "with another", d, gateway.Taken)
		if got, _ := o.lab.take(); len(got) != 1 {
			t.Errorf("%d: %d envelopes", code, len(got))
		}
	}
}

// TestStreamInPieces (U-065): a partner that ends each response after a delta, without an end, is
// not asked as fast as it answers.
func TestStreamInPieces(t *testing.T) {
	t.Parallel()
	o := newOut(t)
	o.p.Timeout = time.Second
	o.lab.does(streamAt, func(w http.ResponseWriter, r *http.Request) {
		next := 0
		if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &next); err == nil {
			next++
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: "+`{"delta_seq":%d,"type":"progress","payload":{"text":"soon"}}`+"\n\n", next)
	})
	o.carry(t, "without an end", outgoing("pieces", mail.Request, "x", "how many?"), gateway.Refused)
	if _, streams := o.lab.take(); len(streams) > 50 {
		t.Errorf("%d requests in a second", len(streams))
	}
}
