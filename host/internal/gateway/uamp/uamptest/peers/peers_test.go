package peers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"skep/host/internal/gateway/uamp/uamptest/peers"
)

// pairs are who serves and who asks.
var pairs = []struct{ server, client peers.Language }{{peers.Node, peers.Python}, {peers.Python, peers.Node}}

// site is a server and the clients of it.
type site struct {
	peers  peers.Peers
	server *peers.Server
	client peers.Language
	flags  []string
}

// do does jobs by a client of its own.
func (s site) do(t *testing.T, jobs ...string) []peers.Event {
	t.Helper()
	return s.peers.Client(t, s.client, jobs, append([]string{"--url", s.server.URL, "--to", s.server.DID}, s.flags...)...)
}

// TestPeers: programs on different libraries speak with each other over TLS 1.3 with
// certificates of both sides.
func TestPeers(t *testing.T) {
	t.Parallel()
	p := peers.Find(t)
	dir := newCertificates(t)
	flags := []string{"--ca", filepath.Join(dir, "ca.pem"), "--cert", filepath.Join(dir, "cert.pem"), "--cert-key", filepath.Join(dir, "key.pem")}
	for _, pair := range pairs {
		t.Run(fmt.Sprintf("%s asks %s", pair.client, pair.server), func(t *testing.T) {
			t.Parallel()
			server := p.Serve(t, pair.server, append([]string{"--did", "web", "--client-ca", filepath.Join(dir, "ca.pem")}, flags...)...)
			s := site{p, server, pair.client, append([]string{"--alg", "EdDSA"}, flags...)}
			t.Run("exchanges", s.tryExchanges)
			t.Run("refusals", s.tryRefusals)
			t.Run("spellings", s.trySpellings)
		})
	}
}

// tryExchanges: requests, streams that are resumed, acknowledged and cancelled,
// subscriptions and proposals between programs on different libraries.
func (s site) tryExchanges(t *testing.T) {
	got := s.do(t,
		`{"intent":"ask","content":"direct hello"}`,
		`{"intent":"ask","content":"count 10","delta_window":3,"drop_after":4,"stream_id":"mine"}`,
		`{"intent":"ask","content":"count 10","delta_window":4,"ack":"resume"}`,
		`{"intent":"ask","content":"slow","cancel_after":1}`,
		`{"intent":"ask","content":"fail"}`,
		`{"intent":"subscribe","content":"news","cancel_after":3}`,
		`{"intent":"propose","content":"tea"}`,
		`{"intent":"propose","content":"no tea"}`,
		`{"intent":"inform","content":"it rains"}`,
		`{"get":"/.well-known/agent-manifest.json"}`,
	)
	wantAnswer(t, got[0], "confirm", "hello")
	if at := got[1]["location"]; at != "/v1/stream/mine" {
		t.Errorf("the stream is at %v", at)
	}
	all := "0 1 2 3 4 5 6 7 8 9 "
	wantStream(t, got[1], map[string]any{"connections": 2.0, "chunks": all, "last": "done", "gaps": 0.0, "repeats": 0.0})
	wantStream(t, got[2], map[string]any{"connections": 6.0, "chunks": all, "last": "done", "gaps": 0.0, "repeats": 0.0})
	wantStream(t, got[3], map[string]any{"types": []any{"progress", "cancel"}, "last": "cancel"})
	wantStream(t, got[4], map[string]any{"types": []any{"error"}, "last": "error"})
	wantStream(t, got[5], map[string]any{"chunks": "news 0 news 1 news 2 ", "last": "cancel"})
	wantAnswer(t, got[6], "confirm", "tea")
	wantAnswer(t, got[7], "deny", "no tea")
	want(t, got[8], map[string]any{"status": 202.0, "location": nil})
	want(t, got[9], map[string]any{"status": 200.0, "verified": true, "type": "application/manifest+jws"})
}

// refused is what becomes of each bad kind of envelope.
var refused = map[string][]string{
	"401 4.01": {"altered", "wrong-key", "other-kid", "none", "hs256", "swapped", "es384", "critical", "body-left-out", "attached", "past", "future", "replay", "surrogate"},
	"400 4.00": {"unsigned", "duplicate", "extra", "missing", "utf8", "deep"},
	"413 4.13": {"large"},
	"403 4.03": {"misrouted"},
}

// tryRefusals: the server refuses what is wrong in one thing, and the other program
// verifies the refusal.
func (s site) tryRefusals(t *testing.T) {
	var jobs, answers []string
	for _, answer := range slices.Sorted(maps.Keys(refused)) {
		for _, kind := range refused[answer] {
			jobs = append(jobs, fmt.Sprintf(`{"intent":"ask","content":"direct x","bad":%q}`, kind))
			answers = append(answers, answer)
		}
	}
	for i, got := range s.do(t, jobs...) {
		if answer := fmt.Sprintf("%v %v", got["status"], got["code"]); answer != answers[i] || got["verified"] == false {
			t.Errorf("%s is answered by %v", jobs[i], got)
		}
	}
}

// odd are numbers and texts that canonical forms spell differently.
const odd = `{"a":[1e-6,1.0,-0.0,0.10,1E30,1e21,1e-7,12345678901234567890,5e-324,333333333.33333329,0.0000033333333],` +
	`"😀":1,"ﬓ":"é é","é":"\u0001\u001f\u007f\/\"\\","":" €$A'B","b":{"2":[],"10":{},"":null,"t":true}}`

// trySpellings: both programs read every spelling of a signature that the document
// leaves open, and know which one it was.
func (s site) trySpellings(t *testing.T) {
	type how struct{ Canonical, Hash, Payload string }
	var jobs []string
	var forms []map[string]any
	add := func(h how, more string) {
		jobs = append(jobs, fmt.Sprintf(`{"intent":"ask","content":"direct ✓","ext":%s,"how":{"canonical":%q,"hash":%q,"payload":%q}%s}`, odd, h.Canonical, h.Hash, h.Payload, more))
		forms = append(forms, map[string]any{"canonical": h.Canonical, "hash": h.Hash, "payload": h.Payload})
	}
	for _, canonical := range []string{"jcs", "literal"} {
		for _, hash := range []string{"hex", "prefixed", "base64url"} {
			for _, payload := range []string{"compact", "spaced", "printed"} {
				add(how{canonical, hash, payload}, "")
			}
		}
		add(how{canonical, "hex", "compact"}, `,"escape":true`)
	}
	jobs = append(jobs, `{"intent":"ask","content":"direct ✓","how":{"form":"unencoded"}}`)
	var ext any
	if err := json.Unmarshal([]byte(odd), &ext); err != nil {
		t.Fatal(err)
	}
	for i, got := range s.do(t, jobs...) {
		wantAnswer(t, got, "confirm", "✓")
		if i == len(forms) {
			continue
		}
		form, envelope := accepted(t, s.server, "id", got["id"])
		if !reflect.DeepEqual(form, forms[i]) {
			t.Errorf("%v was read as %v", forms[i], form)
		}
		if !reflect.DeepEqual(envelope["ext"], ext) {
			t.Errorf("ext arrives as %v", envelope["ext"])
		}
	}
}

// accepted is how a server took the envelope whose member has a value.
func accepted(t *testing.T, server *peers.Server, member string, value any) (form, envelope map[string]any) {
	t.Helper()
	for {
		e := server.Next(t, "accepted")
		form, _ = e["form"].(map[string]any)
		if envelope, _ = e["envelope"].(map[string]any); envelope[member] == value {
			return form, envelope
		}
	}
}

// TestQuirks: a stream that is cut, told twice and spread over lines is read whole, an
// altered answer is seen, and a capability token is asked for. The programs take bearer
// tokens and plain HTTP/2 here, for tests that want them.
func TestQuirks(t *testing.T) {
	t.Parallel()
	p := peers.Find(t)
	for _, pair := range pairs {
		t.Run(fmt.Sprintf("%s asks %s", pair.client, pair.server), func(t *testing.T) {
			t.Parallel()
			flags := strings.Fields("--plain --did web --bearer secret --require-cap --quirk cut --quirk repeat --quirk many-lines --quirk altered")
			s := site{p, p.Serve(t, pair.server, flags...), pair.client, []string{"--plain", "--bearer", "secret"}}
			got := s.do(t,
				`{"intent":"ask","content":"count 5","cap":{}}`,
				`{"intent":"ask","content":"direct x","cap":{"scope":"uamp:*"}}`,
				`{"intent":"inform","content":"x"}`,
				`{"intent":"inform","content":"x","cap":{"exp":1}}`,
				`{"intent":"inform","content":"x","cap":{"aud":"did:web:other.example"}}`,
				`{"intent":"inform","content":"x","cap":{"scope":"uamp:ask"}}`,
			)
			wantStream(t, got[0], map[string]any{"connections": 2.0, "chunks": "0 1 2 3 4 ", "last": "done", "gaps": 0.0})
			want(t, got[1], map[string]any{"status": 200.0, "verified": false})
			for _, e := range got[2:] {
				want(t, e, map[string]any{"status": 403.0})
			}
			s.flags = []string{"--plain"}
			want(t, s.do(t, `{"intent":"inform","content":"x","cap":{}}`)[0], map[string]any{"status": 401.0, "code": "4.01"})
		})
	}
}

// TestCallBack: each server's agent asks the other's, which answers by an envelope to the
// place that the DID document of the asker leads to.
func TestCallBack(t *testing.T) {
	t.Parallel()
	p := peers.Find(t)
	servers := map[peers.Language]*peers.Server{}
	for _, l := range []peers.Language{peers.Node, peers.Python} {
		servers[l] = p.Serve(t, l, "--plain", "--did", "web", "--service", "Messages")
	}
	for _, pair := range pairs {
		asker, answerer := servers[pair.client], servers[pair.server]
		asked := asker.Do(t, fmt.Sprintf(`{"to":%q,"intent":"ask","content":"callback later"}`, answerer.DID))
		want(t, asked, map[string]any{"status": 202.0})
		_, e := accepted(t, asker, "reply_to", asked["id"])
		if e["intent"] != "confirm" || e["from"] != answerer.DID || e["body"].(map[string]any)["content"] != "later" {
			t.Errorf("%s is called back with %v", pair.client, e)
		}
	}
}

func want(t *testing.T, got map[string]any, want map[string]any) {
	t.Helper()
	for name, value := range want {
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s is %v, want %v, in %v", name, got[name], value, got)
		}
	}
}

func wantStream(t *testing.T, got peers.Event, members map[string]any) {
	t.Helper()
	stream, _ := got["stream"].(map[string]any)
	want(t, stream, members)
	seqs, _ := stream["seqs"].([]any)
	for i, seq := range seqs {
		if seq != float64(i) {
			t.Errorf("the deltas are %v", seqs)
		}
	}
}

func wantAnswer(t *testing.T, got peers.Event, intent, content string) {
	t.Helper()
	answer, _ := got["answer"].(map[string]any)
	body, _ := answer["body"].(map[string]any)
	if got["status"] != 200.0 || got["verified"] != true || answer["intent"] != intent || body["content"] != content {
		t.Errorf("want %s %q, got %v", intent, content, got)
	}
}
