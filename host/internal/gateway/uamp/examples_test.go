package uamp_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/seal"
)

// example is a block that the document prints, its placeholders filled but for sig.
type example struct {
	Lines, Kind string
	Text        json.RawMessage
}

func documentExamples(t *testing.T) (list []example) {
	t.Helper()
	raw, err := os.ReadFile("../../../../spec/gateways/uamp/examples.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		t.Fatalf("%d examples: %v", len(list), err)
	}
	return list
}

// signedExample is a printed envelope with the time now and a signature over its own bytes.
func signedExample(t *testing.T, x example, of seal.Key) string {
	t.Helper()
	var printed envelope.Envelope
	s, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 16}.Read(x.Text)
	if printed = s.Envelope; err != nil {
		t.Fatalf("%s: %v", x.Lines, err)
	}
	token, err := of.Grant(seal.Claims{Issuer: printed.From, Audience: printed.To, Scope: []string{"uamp:*"}, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(x.Text), `"cap_token": "…"`, `"cap_token": "`+token+`"`, 1)
	text = strings.Replace(text, printed.Time.Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339), 1)
	if s, err = (envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 16}).Read([]byte(text)); err != nil {
		t.Fatalf("%s: %v", x.Lines, err)
	}
	for sum := range s.Sums {
		sig, err := of.Sign(sum)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(text, `"sig": "…"`, `"sig": "`+sig+`"`, 1)
	}
	return text
}

// TestDocumentExamples (U-001, U-050, U-060, U-067, U-106, V-U22, V-U23, D-U2, D-U4): each
// envelope that the document prints is asked of the agent that it names, and each delta is
// read as one of the stream that it stands in.
func TestDocumentExamples(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"2+2": "4", "# Draw me a sheep…": "baa", "512×512 cat": "a cat"}
	for _, x := range documentExamples(t) {
		if x.Kind == "delta" {
			var seq struct {
				Seq int `json:"delta_seq"`
			}
			d, err := envelope.Reader{MaxBytes: 1 << 20, MaxDepth: 16}.ReadDelta(x.Text, "str-img")
			if jsonErr := json.Unmarshal(x.Text, &seq); err != nil || jsonErr != nil || d.Seq != seq.Seq || !json.Valid(d.Payload) {
				t.Errorf("%s: %+v: %v", x.Lines, d, err)
			}
			continue
		}
		var named struct {
			From   string
			To     []string
			Stream string `json:"stream_id"`
			Body   struct{ Content string }
		}
		if err := json.Unmarshal(x.Text, &named); err != nil {
			t.Fatal(err)
		}
		h := newHive(t, func(o *uamp.Options) { o.DID = named.To[0] })
		own := key(t, named.From, private("l"))
		h.rt.AddPartner(gateway.Partner{
			Name: "lab", Tenant: "default", IDs: []string{named.From}, May: gateway.Rights{gateway.MayAsk},
			Options: map[string]any{"keys": []string{string(own.Public().JWK())}},
		})
		h.expose("calc", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
			return gateway.Answer{Body: answers[turn.Ask.Body]}
		})
		r := h.post(t, "lab-token", signedExample(t, x, own))
		if r.status != 202 || named.Stream != "" && r.location != "/v1/stream/"+named.Stream {
			t.Errorf("%s: %d %s %s", x.Lines, r.status, r.location, r.text)
			continue
		}
		lines := h.read(t, r.location)
		last := delta(t, lines[len(lines)-1])
		if want := answers[named.Body.Content]; last.Type != envelope.DeltaDone || want == "" || !strings.Contains(string(last.Payload), want) {
			t.Errorf("%s: %v", x.Lines, lines)
		}
	}
}
