package model_test

import (
	"testing"

	"skep/host/internal/turn/egress"
	"skep/host/internal/turn/model"
	"skep/host/internal/turn/model/modeltest"
)

// TestGuarded uses the transport of a host: a private provider is reachable only if the
// operator allows it.
func TestGuarded(t *testing.T) {
	each(t, func(t *testing.T, provider string, streamed bool) {
		w := newWorld(t, provider, modeltest.InOrder(modeltest.Reply{Text: []string{"Yes."}}))
		grant, err := egress.ParseGrant(w.spec.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		client := egress.New(egress.Options{KeepAlive: egress.KeepAlive{MaxIdlePerHost: 2}})
		t.Cleanup(client.Close)
		policy := egress.Policy{Table: "[models.default]", Grants: []egress.Grant{grant}}
		w.spec.Retries = 2
		w.opt.Transport = client.Transport(policy)
		_, _, err = ask(t, w.open(t), question, streamed)
		failed(t, err, model.Auth, "base_url leads to an address that is not public; set allow_private = true")
		foreign := policy
		foreign.Grants = nil
		w.opt.Transport = client.Transport(foreign)
		_, _, err = ask(t, w.open(t), question, streamed)
		failed(t, err, model.Auth, "base_url is refused: POST "+w.spec.BaseURL)
		policy.AllowPrivate = true
		w.opt.Transport = client.Transport(policy)
		if resp, _, err := ask(t, w.open(t), question, streamed); err != nil || resp.Text != "Yes." {
			t.Errorf("got %q, %v", resp.Text, err)
		}
		w.spec.BaseURL = "http://127.0.0.1:1"
		if policy.Grants[0], err = egress.ParseGrant(w.spec.BaseURL); err != nil {
			t.Fatal(err)
		}
		w.opt.Transport = client.Transport(policy)
		_, _, err = ask(t, w.open(t), question, streamed)
		failed(t, err, model.Unavailable, "refused the connection")
		if len(w.waited) != 2 {
			t.Errorf("tried again after %v", w.waited)
		}
	})
}
