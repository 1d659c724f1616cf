package client

import (
	"errors"
	"net/http"
	"testing"
)

// Peers and dead letters come as the host has them, page by page.
func TestPeersAndDeadLetters(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 10)
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.URL.RequestURI()
		switch r.URL.Path {
		case "/skep/v1/peers":
			reply(w, 200, `{"peers":[{"swarm_name":"depot","base_url":"https://depot.example","last_seen":null,"fixed":true}]}`)
		case "/skep/v1/dead-letters":
			reply(w, 200, `{"dead_letters":[{"id":"i","peer":"depot","task_id":"t","instance":"user:alice","reason":"no answer","since":"2026-11-20T15:52:40.084847+00:00","died":"2026-11-20T15:53:10.084847+00:00",
				"message":{"id":"1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11","timestamp":"2026-11-20T15:52:40.084847+00:00","msg_type":"request","message":{"task_id":"t","request_id":"1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11",
				"sender":{"address_type":"agent","address":"boss"},"recipient":{"address_type":"agent","address":"stock@depot"},"subject":"s","body":"b"}}}],"next":"7"}`)
		case "/skep/v1/dead-letters/a/b/resend":
			reply(w, 200, `{"status":"resent","id":"a/b","peer":"depot"}`)
		default:
			reply(w, 404, `{"detail":"there is no dead letter"}`)
		}
	})
	peers, err := c.Peers(t.Context())
	if err != nil || len(peers) != 1 || peers[0].Name != "depot" || !peers[0].Fixed || peers[0].LastSeen != "" {
		t.Errorf("Peers() = %+v, %v", peers, err)
	}
	letters, next, err := c.DeadLetters(t.Context(), "9", 5)
	if err != nil || next != "7" || len(letters) != 1 || letters[0].Message.Payload.Body != "b" || letters[0].Died.IsZero() {
		t.Errorf("DeadLetters() = %+v, %q, %v", letters, next, err)
	}
	if err := c.ResendDeadLetter(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	var refused *Error
	if err := c.ResendDeadLetter(t.Context(), "none"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("ResendDeadLetter of none = %v", err)
	}
	for _, want := range []string{"GET /skep/v1/peers", "GET /skep/v1/dead-letters?before=9&limit=5", "POST /skep/v1/dead-letters/a%2Fb/resend"} {
		if got := <-seen; got != want {
			t.Errorf("asked %q, want %q", got, want)
		}
	}
}

// That a swarm is not well is an answer; that the host does not know it is not.
func TestPingPeer(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.EscapedPath() {
		case "POST /skep/v1/peers/depot/ping":
			reply(w, 200, `{"swarm_name":"depot","active":true,"latency":0.25,"version":"1.3","last_seen":"2026-11-20T15:52:40.084847+00:00","error":null}`)
		case "POST /skep/v1/peers/a%2Fb/ping":
			reply(w, 200, `{"swarm_name":"a/b","active":false,"latency":null,"version":"","last_seen":null,"error":"it answers 502 Bad Gateway"}`)
		default:
			reply(w, 404, `{"detail":"swarm is not registered"}`)
		}
	})
	if p, err := c.PingPeer(t.Context(), "depot"); err != nil || !p.Active || p.Latency == nil || *p.Latency != 0.25 || p.Version != "1.3" || p.Error != "" {
		t.Errorf("PingPeer() = %+v, %v", p, err)
	}
	if p, err := c.PingPeer(t.Context(), "a/b"); err != nil || p.Active || p.Latency != nil || p.LastSeen != "" || p.Error != "it answers 502 Bad Gateway" {
		t.Errorf("PingPeer() = %+v, %v", p, err)
	}
	var refused *Error
	if _, err := c.PingPeer(t.Context(), "none"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("PingPeer of none = %v", err)
	}
}
