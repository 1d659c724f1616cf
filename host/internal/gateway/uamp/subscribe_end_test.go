package uamp_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"skep/abi"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/mail"
)

// TestSubscribeEachAgain (U-093): the repeat of an event that only some of its subscriptions have
// reaches the others, also where the former have ended.
func TestSubscribeEachAgain(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	for _, topic := range []string{"tea", "milk"} {
		o.carry(t, topic, subscribing(topic, "subscribe", `,"topic":"`+topic+`"`), gateway.Taken)
	}
	got, _ := o.lab.take()
	slices.SortFunc(got, func(a, b envelope.Signed) int { return strings.Compare(string(a.ID), string(b.ID)) }) // as their records
	bare := about(got[0], envelope.Notify, "hot")
	bare.ReplyTo = ""
	o.rec.failNext(nil, errors.New("the store is away for a moment"))
	if r := o.send(t, bare); r.status != http.StatusInternalServerError {
		t.Errorf("%d %s", r.status, r.text)
	}
	if len(o.rec.asked) != 1 {
		t.Fatalf("%+v", o.rec.asked)
	}
	o.take(t, about(got[0], envelope.Confirm, "that was all"))
	o.take(t, bare)
	if list := strings.Join(o.told(t, 3), ", "); list != "tells|hot|hot, answers||that was all, tells|hot|hot" {
		t.Error(list)
	}
}

// TestSubscribeLeavesRoom (U-093): the subscriptions of a task keep no place from its requests.
func TestSubscribeLeavesRoom(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	for n := range 64 {
		o.carry(t, fmt.Sprint(n), subscribing(fmt.Sprint(n), "subscribe", `,"topic":"tea"`), gateway.Taken)
	}
	other := subscribing("other", "subscribe", `,"topic":"tea"`)
	other.Wrapper.Payload.Sender.Name = "other@hive"
	if got := o.carry(t, "one more", other, gateway.Refused); !strings.Contains(got.Reason, "end one by unsubscribe") {
		t.Error(got.Reason)
	}
	o.lab.does(streamAt, events(9, done))
	o.carry(t, "a request", outgoing("asked", mail.Request, "x", "how many?"), gateway.Taken)
}

// TestSubscribeFault (U-085, U-093): a subscription that cannot be read any more is answered, and
// withdrawn again while the partner is away.
func TestSubscribeFault(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	var cancels atomic.Int32
	o.lab.does(func(w http.ResponseWriter, s envelope.Signed) {
		if s.Intent == envelope.Cancel && cancels.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		streamAt(w, s)
	}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	runs(t, o.g)
	o.carry(t, "subscribe", subscribing("s1", "subscribe", `,"topic":"tea"`), gateway.Taken)
	until(t, "the end of the record", func() bool { return o.subscriptions(t) == 0 })
	if list := o.told(t, 1); len(list) != 1 || !strings.HasPrefix(list[0], "answers|[5.00]|The subscription is over: ") {
		t.Error(list)
	}
	if n := cancels.Load(); n != 3 {
		t.Errorf("%d cancels", n)
	}
}

// denying refuses requests by the policy of this host.
type denying struct{}

// RoundTrip implements [http.RoundTripper].
func (denying) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &abi.Error{Code: abi.CodeDenied, Message: "the policy refuses the address"}
}

// TestUnsubscribeRefused (U-085, U-093): a subscription ends with its cancel or where its partner
// has signed that it is over. What this host or a credential refuses ends none.
func TestUnsubscribeRefused(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	o.carry(t, "subscribe", subscribing("s1", "subscribe", `,"topic":"tea"`), gateway.Taken)
	p := o.p
	p.Client = &http.Client{Transport: denying{}}
	if got := o.g.Carry(t.Context(), p, subscribing("u0", "unsubscribe", "")); got.State != gateway.Refused || !strings.Contains(got.Reason, "policy") || o.subscriptions(t) != 1 {
		t.Errorf("%+v, %d records", got, o.subscriptions(t))
	}
	for n, c := range []struct {
		code string
		want gateway.CarriedState
		left int
	}{{"4.03", gateway.Refused, 1}, {"5.04", gateway.Later, 1}, {"4.04", gateway.Taken, 0}} {
		o.lab.does(o.lab.answers(400, envelope.Error, "application/json", `{"code":"`+c.code+`","message":"no"}`), nil)
		o.carry(t, c.code, subscribing(fmt.Sprint("u1", n), "unsubscribe", ""), c.want)
		if n := o.subscriptions(t); n != c.left {
			t.Errorf("%s: %d records", c.code, n)
		}
	}
	if list := o.told(t, 1); list[0] != "answers|[CANCELLED]|The subscription was cancelled." {
		t.Error(list)
	}
}

// TestSubscribeEventAgain (U-093): the repeat of an event whose subscriptions have all ended reaches
// no agent, also after a restart. Another event without a subscription does, as any notify.
func TestSubscribeEventAgain(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	seen := o.exposeAsks("boss")
	o.carry(t, "tea", subscribing("tea", "subscribe", `,"topic":"tea"`), gateway.Taken)
	got, _ := o.lab.take()
	bare := about(got[0], envelope.Notify, "hot")
	bare.ReplyTo = ""
	o.rec.store.failNext("Put", errors.New("the store is away for a moment"))
	if r := o.send(t, bare); r.status != http.StatusInternalServerError {
		t.Errorf("%d %s", r.status, r.text)
	}
	o.take(t, bare)
	o.take(t, about(got[0], envelope.Confirm, "that was all"))
	if list := strings.Join(o.told(t, 2), ", "); list != "tells|hot|hot, answers||that was all" {
		t.Error(list)
	}
	again, err := uamp.New(uamp.Options{Runtime: o.rec, DID: hostDID, Keys: uamp.Keys{Current: private("h")}})
	if err != nil {
		t.Fatal(err)
	}
	restarted := httptest.NewServer(gatewaytest.Listener(o.rt, again.Mounts()))
	t.Cleanup(restarted.Close)
	for _, url := range []string{o.server.URL, restarted.URL} {
		o.server.URL = url
		if r := o.send(t, bare); r.status != http.StatusUnprocessableEntity || !strings.Contains(r.text, "the subscription is over") {
			t.Errorf("%d %s", r.status, r.text)
		}
	}
	other := about(got[0], envelope.Notify, "cold")
	other.ReplyTo = ""
	o.take(t, other)
	if first := <-seen; first.Body != "cold" {
		t.Errorf("the agent has %q", first.Body)
	}
}

// TestSubscribeTaskEndsBetween (U-093): a task that ends between the check and an event gets no
// event, and its subscription is withdrawn from the partner.
func TestSubscribeTaskEndsBetween(t *testing.T) {
	t.Parallel()
	o := newOut(t, withTenants)
	o.lab.does(streamAt, events(1, chunk("a")))
	o.rec.fails = []error{gateway.ErrUnknown}
	o.rec.failing = func() { o.rt.CloseRequest("request-tea") }
	runs(t, o.g)
	o.carry(t, "tea", subscribing("tea", "subscribe", `,"topic":"tea"`), gateway.Taken)
	until(t, "the end of the subscription", func() bool { return o.subscriptions(t) == 0 })
	sent, _ := o.lab.take()
	if n := len(sent); n != 2 || sent[1].Intent != envelope.Cancel || sent[1].ReplyTo != sent[0].ID {
		t.Errorf("the partner has %+v", sent)
	}
	if asked := o.rec.take(); len(asked) > 0 {
		t.Errorf("the task has %+v", asked)
	}
}
