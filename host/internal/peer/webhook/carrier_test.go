package webhook_test

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/peer/webhook"
	"skep/host/internal/swarm"
	"skep/host/internal/turn/egress"
	"skep/spec/mail"
)

// key is a shared secret.
var key = []byte(strings.Repeat("k", 24))

// transport reaches an origin as the host does; private opens addresses of this machine.
func transport(t *testing.T, origin string, private bool) http.RoundTripper {
	t.Helper()
	grant, err := egress.ParseGrant("POST " + origin)
	if err != nil {
		t.Fatal(err)
	}
	c := egress.New(egress.Options{KeepAlive: egress.KeepAlive{MaxIdlePerHost: 1}})
	t.Cleanup(c.Close)
	return c.Transport(egress.Policy{Table: "[questions]", Grants: []egress.Grant{grant}, AllowPrivate: private, PrivateNames: private, NoPublicHTTP: true})
}

func at() time.Time { return time.Unix(1614265330, 0) }

func carrierTo(t *testing.T, origin string, private bool) *webhook.Carrier {
	return webhook.New(webhook.Options{URL: origin + "/planted", Key: key, Transport: transport(t, origin, private), Now: at})
}

func delivery() swarm.Delivery {
	return swarm.Delivery{
		Task:  swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: "acme", Swarm: "hive", Instance: "user:bob"}, Task: "order"},
		Since: at().Add(time.Hour), // it was given up, and is sent again
		Wrapper: mail.Interswarm{MessageID: "m-1", Timestamp: mail.FormatTime(at()), Payload: mail.Payload{
			Body: `{"agent":"boss","calls":[{"call_id":"t1.c1","action":"confirm"}]}`,
		}},
	}
}

// The request has the shape of the calls, an id and a signature of Standard Webhooks; each attempt has
// the same body, with the time of the question.
func TestCarry(t *testing.T) {
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if h := r.Header; r.URL.Path != "/planted" || h.Get("webhook-id") != "m-1" || h.Get("webhook-timestamp") != "1614265330" || h.Get("Content-Type") != "application/json" ||
			h.Get("webhook-signature") != webhook.Sign(key, "m-1", "1614265330", body) {
			t.Errorf("%s %v", r.URL, h)
		}
	}))
	defer server.Close()
	c, d := carrierTo(t, server.URL, true), delivery()
	for range 2 {
		if got := c.Carry(t.Context(), d); got.State != gateway.Taken {
			t.Fatalf("%+v", got)
		}
	}
	want := `{"type":"question.asked","timestamp":"2021-02-25T15:02:10.000000+00:00","data":{"tenant":"acme","swarm":"hive","instance":"user:bob","task_id":"order","agent":"boss","calls":[{"call_id":"t1.c1","action":"confirm"}]}}`
	if len(bodies) != 2 || bodies[0] != want || bodies[1] != want {
		t.Errorf("%q", bodies)
	}
}

// TestSign: the signature is that of the published libraries
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/javascript/src/index.test.ts).
func TestSign(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := webhook.Sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// What a receiver answers, or that it cannot be reached, says whether the message is sent again. No
// reason has the path, which may be a secret.
func TestAnswers(t *testing.T) {
	status, moved := http.StatusOK, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		moved = moved || r.URL.Path == "/elsewhere"
		w.Header().Set("Location", "/elsewhere")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(status)
	}))
	defer server.Close()
	c := carrierTo(t, server.URL, true)
	for code, want := range map[int]gateway.CarriedState{
		http.StatusOK: gateway.Taken, http.StatusNoContent: gateway.Taken, http.StatusMovedPermanently: gateway.Later, http.StatusPermanentRedirect: gateway.Later,
		http.StatusBadRequest: gateway.Later, http.StatusUnauthorized: gateway.Later, http.StatusNotFound: gateway.Later, http.StatusGone: gateway.Refused,
		http.StatusTooManyRequests: gateway.Later, http.StatusInternalServerError: gateway.Later, http.StatusServiceUnavailable: gateway.Later,
	} {
		status = code
		got := c.Carry(t.Context(), delivery())
		if got.State != want || strings.Contains(got.Reason, "planted") || (want != gateway.Taken) != (got.Reason != "") {
			t.Errorf("%d: %+v, want %d", code, got, want)
		}
		if code == http.StatusServiceUnavailable && got.Wait != 7*time.Second {
			t.Errorf("it waits %s", got.Wait)
		}
	}
	if moved {
		t.Error("a redirect was followed")
	}
	server.Close()
	refused := map[string]*webhook.Carrier{
		"dead": c, "private": carrierTo(t, server.URL, false), "public http": carrierTo(t, "http://192.0.2.1", true),
	}
	for name, c := range refused {
		if got := c.Carry(t.Context(), delivery()); got.State != gateway.Later || got.Reason == "" || strings.Contains(got.Reason, "planted") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An attempt whose context ends while the receiver is silent is made again later.
func TestCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = conn.Read(make([]byte, 1)) // the request has come
			cancel()
			defer conn.Close()
			<-t.Context().Done()
		}
	}()
	if got := carrierTo(t, "http://"+l.Addr().String(), true).Carry(ctx, delivery()); got.State != gateway.Later {
		t.Errorf("%+v", got)
	}
}
