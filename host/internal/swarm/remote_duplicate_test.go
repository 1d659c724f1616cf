package swarm_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// A message that comes again is the same whatever its attempt bears, and another one
// under its id is refused.
func TestWrapperComesAgain(t *testing.T) {
	p := federate(t, "hive", "depot")
	p.set(map[string]string{"depot": "gone"})
	if _, err := p.hand("depot", "hive", false, foreign("t"), 0); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(w *mail.Interswarm){
		"nothing":      func(*mail.Interswarm) {},
		"auth_token":   func(w *mail.Interswarm) { w.AuthToken = "t" },
		"metadata":     func(w *mail.Interswarm) { w.Metadata = json.RawMessage(`{"skep_signature":"x"}`) },
		"timestamp":    func(w *mail.Interswarm) { w.Timestamp = mail.FormatTime(time.Unix(2e9, 0)) },
		"contributors": func(w *mail.Interswarm) { w.TaskContributors = append(w.TaskContributors, "swarm:depot@yard") },
		"routing_info": func(w *mail.Interswarm) { w.Payload.RoutingInfo = json.RawMessage(`{"traceparent":"x"}`) },
	} {
		if got, err := p.hand("depot", "hive", false, foreign("t", change), 0); err != nil || !got.Duplicate {
			t.Errorf("another %s: %+v, %v", name, got, err)
		}
	}
	for name, change := range map[string]func(w *mail.Interswarm){
		"body":      func(w *mail.Interswarm) { w.Payload.Body = "[] " },
		"subject":   func(w *mail.Interswarm) { w.Payload.Subject = "S" },
		"sender":    func(w *mail.Interswarm) { w.Payload.Sender.Name = "clerk@depot" },
		"recipient": func(w *mail.Interswarm) { w.Payload.Recipients[0].Name = "boss@hive" },
		"request":   func(w *mail.Interswarm) { w.Payload.ID = "1c9d0000-0000-4000-8000-000000000003" },
		"type":      func(w *mail.Interswarm) { w.Type = mail.Response },
		"owner":     func(w *mail.Interswarm) { w.TaskOwner = "user:v@depot" },
		"task":      func(w *mail.Interswarm) { w.Payload.TaskID = "u" },
	} {
		_, err := p.hand("depot", "hive", false, foreign("t", change), 0)
		if !errors.Is(err, swarm.ErrConflict) || !strings.Contains(err.Error(), "message_id '1c9d0000-0000-4000-8000-000000000001' was used") {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// What was accepted is known by its digest for as long as its id is: a changed form
// would make repeats of before an upgrade conflicts.
func TestWrapperDigestStays(t *testing.T) {
	const want = "51a3cf7a6bce92ac11af6a24ea341da9a1791e6e01d9b49515b713e1825714b7"
	p := federate(t, "hive", "depot")
	p.set(map[string]string{"depot": "gone"})
	if _, err := p.hand("depot", "hive", false, foreign("t"), 0); err != nil {
		t.Fatal(err)
	}
	hive := p.hives["hive"]
	sub, err := hive.store.Submission(t.Context(), guest("hive", "depot", "t").InstanceKey, "peer", "depot\x1f"+foreign("t").MessageID)
	if got := hex.EncodeToString(sub.Digest); err != nil || got != want {
		t.Errorf("digest %s, %v", got, err)
	}
}
