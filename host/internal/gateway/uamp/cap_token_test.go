package uamp_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skep/host/internal/definition/config"
	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/seal"
	"skep/spec/mail"
)

// TestCarryHeldToken (U-042): each envelope to a partner has the capability token of its table,
// which the partner judges. With one that has expired nothing is sent: the message waits for
// another one, and a look at the partner tells the reason.
func TestCarryHeldToken(t *testing.T) {
	t.Parallel()
	overBindings(t, testCarryHeldToken)
}

func testCarryHeldToken(t *testing.T, o *out) {
	l := newHive(t, func(opt *uamp.Options) { opt.RequireToken = true })
	o.host(t, l)
	var runs atomic.Int32
	l.expose("calc", func(context.Context, *gatewaytest.Turn) gateway.Answer {
		runs.Add(1)
		return gateway.Answer{Body: "4"}
	})
	here := key(t, "", private("h"))
	here = here.WithID(calcDID + "#" + here.Public().Thumbprint())
	holds := func(scope string, life time.Duration) {
		t.Helper()
		token, err := here.Grant(seal.Claims{Issuer: calcDID, Subject: agentDID("boss"), Audience: []string{calcDID}, Scope: []string{scope}, Expires: time.Now().Add(life)})
		if err != nil {
			t.Fatal(err)
		}
		o.p.Options["cap_token"] = config.Secret(token)
		o.rt.AddPartner(o.p)
	}
	asks := func(id string, want gateway.CarriedState, turns int32, reason string) {
		t.Helper()
		got := o.carry(t, id, outgoing(id, mail.Request, "calc", "2+2"), want)
		if n := runs.Swap(0); n != turns || !strings.Contains(got.Reason, reason) {
			t.Errorf("%s: %d turns, %+v", id, n, got)
		}
	}
	holds("uamp:inform", time.Hour)
	asks("for another intent", gateway.Taken, 0, "")
	if answers := o.rec.take(); len(answers) != 1 || !strings.Contains(answers[0].Body, "its scope lacks uamp:ask") {
		t.Errorf("for another intent: %+v", answers)
	}
	const over = "cap_token of [gateways.uamp.partners.lab] expired at 20"
	holds("uamp:ask", -time.Second)
	asks("late", gateway.Later, 0, over)
	if _, err := o.g.Discover(t.Context(), o.p); err == nil || !strings.Contains(err.Error(), over) {
		t.Errorf("a look at the partner: %v", err)
	}
	holds("uamp:ask", time.Hour)
	asks("late", gateway.Taken, 1, "")
	asks("next", gateway.Taken, 1, "")
}
