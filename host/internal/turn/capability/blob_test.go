package capability

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/host/internal/turn"
	"skep/spec/mail"
)

// tea is what the address of "tea\n" is.
const tea = "b49c876df8b640bda8d61932383cbb787236104f12ebfaf1007ea6dcc11d64aa"

func blobOf(data []byte) string {
	raw, _ := json.Marshal(abi.BlobPutRequest{Data: data})
	return string(raw)
}

func blobAt(sha256 string) string { return fmt.Sprintf(`{"sha256":%q}`, sha256) }

func parseBlob(t *testing.T, sha256 string) swarm.BlobID {
	t.Helper()
	id, ok := swarm.ParseBlobID(sha256)
	if !ok {
		t.Fatalf("%q is no address", sha256)
	}
	return id
}

// What each op of blobs answers, in the JSON of the ABI.
func TestBlobOps(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte{0xff, 7}, abi.MaxBlob/2)
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	calls := []struct {
		op        abi.Op
		req, want string
	}{
		{abi.OpBlobGet, blobAt(tea), `NOT_FOUND: there is no blob ` + tea},
		{abi.OpBlobPut, `{"data":"dGVhCg=="}`, `{"sha256":"` + tea + `"}`},
		{abi.OpBlobGet, blobAt(tea), `{"data":"dGVhCg=="}`},
		{abi.OpBlobPut, `{"data":"dGVhCg=="}`, `{"sha256":"` + tea + `"}`},
		{abi.OpBlobPut, `{"data":""}`, `{"sha256":"` + empty + `"}`},
		{abi.OpBlobGet, blobAt(empty), `{"data":""}`},
		{abi.OpBlobPut, `{}`, `INVALID: blob.put: data is missing; it must be bytes as base64 with padding`},
		{abi.OpBlobPut, `{"data":null}`, `INVALID: blob.put: data is missing; it must be bytes as base64 with padding`},
		{abi.OpBlobPut, `{"data":"dGVhCg"}`, `INVALID: blob.put: data must be bytes as base64 with padding, not a text`},
		{abi.OpBlobPut, `{"data":[1]}`, `INVALID: blob.put: data must be bytes as base64 with padding, not a list`},
		{abi.OpBlobPut, `{"data":"","name":"x"}`, `INVALID: blob.put: name is no member; the members are data`},
		{abi.OpBlobPut, blobOf(append(large, 1)), `LIMIT: a blob of 3000001 bytes, at most 3000000; put it in parts`},
		{abi.OpBlobPut, `{"data":"` + strings.Repeat("A", turn.MaxRequest) + `"}`, `LIMIT: a request of 4194315 bytes, at most 4194304`},
		{abi.OpBlobGet, `{}`, `INVALID: sha256 must be the 64 hexadecimal digits in lower case that blob.put has answered, not ""`},
		{abi.OpBlobGet, blobAt(strings.ToUpper(tea)), `INVALID: sha256 must be the 64 hexadecimal digits in lower case that blob.put has answered, not "` + strings.ToUpper(tea) + `"`},
		{abi.OpBlobGet, blobAt(tea[:62]), `INVALID: sha256 must be the 64 hexadecimal digits in lower case that blob.put has answered, not "` + tea[:62] + `"`},
		{abi.OpBlobGet, blobAt(strings.Repeat("a", maxRequest)), `LIMIT: a request of 2097165 bytes, at most 2097152`},
	}
	h := oneAgent(t, func(v *visit) {
		var lines []string
		for _, c := range calls {
			lines = append(lines, v.call(c.op, c.req))
		}
		v.tell(lines)
	})
	h.allow = Allow{} // it takes no grant
	h.start(0, false)
	defer h.stop()
	for i, got := range h.told(t) {
		if got != calls[i].want {
			t.Errorf("%s %.60s: %s\nwant %s", calls[i].op, calls[i].req, got, calls[i].want)
		}
	}
	if data, err := h.store.Blob(t.Context(), swarm.DefaultTenant, parseBlob(t, tea)); string(data) != "tea\n" || err != nil {
		t.Errorf("kept: %q, %v", data, err)
	}
}

// The largest blob goes in and comes out.
func TestLargestBlob(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("large "), abi.MaxBlob/6)
	h := oneAgent(t, func(v *visit) {
		var put abi.BlobPutResponse
		got := v.call(abi.OpBlobPut, blobOf(large))
		_ = json.Unmarshal([]byte(got), &put)
		v.tell([]string{put.SHA256, fmt.Sprint(len(v.call(abi.OpBlobGet, blobAt(put.SHA256))))})
	})
	h.start(0, false)
	defer h.stop()
	told := h.told(t)
	if want := fmt.Sprint(base64.StdEncoding.EncodedLen(abi.MaxBlob) + len(`{"data":""}`)); len(told) != 2 || told[1] != want {
		t.Fatalf("%q, want an answer of %s bytes", told, want)
	}
	if data, err := h.store.Blob(t.Context(), swarm.DefaultTenant, parseBlob(t, told[0])); !bytes.Equal(data, large) || err != nil {
		t.Errorf("%d bytes are kept, %v", len(data), err)
	}
}

// A turn may put so many blobs; the same again is nothing.
func TestBlobsOfATurn(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, func(v *visit) {
		for i := range abi.MaxBlobs {
			v.call(abi.OpBlobPut, blobOf([]byte{byte(i)}))
		}
		v.tell([]string{v.call(abi.OpBlobPut, blobOf([]byte("more"))), v.call(abi.OpBlobPut, blobOf([]byte{3}))[:9]})
	})
	h.start(0, false)
	defer h.stop()
	if lines := h.told(t); lines[0] != "LIMIT: a turn may put 64 blobs" || lines[1] != `{"sha256"` {
		t.Errorf("%q", lines)
	}
}

// What an action puts stays if it ends well, and is dropped if it fails.
func TestBlobsOfActions(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	deed := func(v *visit, args string) (string, *turn.Exit) {
		v.call(abi.OpBlobPut, blobOf([]byte(args)))
		if strings.Contains(args, "bad") {
			return "", &turn.Exit{Kind: turn.ExitFailed, Message: "no"}
		}
		return "1", nil
	}
	h.newAction("keep", deed)
	ids := map[string]swarm.BlobID{}
	a := h.asks(t, func(v *visit) {
		for _, word := range []string{"good", "bad"} {
			v.call(abi.OpAction, fmt.Sprintf(`{"name":"keep","args":{"w":%q}}`, word))
			args := fmt.Sprintf(`{"w":%q}{"unit":"cent"}`, word)
			ids[word] = parseBlob(t, digestOf(args))
		}
		v.tell([]string{v.call(abi.OpBlobGet, blobAt(ids["good"].String()))[:7], v.call(abi.OpBlobGet, blobAt(ids["bad"].String()))[:9]})
	})
	defer func() { h.stop() }()
	if a.Body != "{\"data\"\nNOT_FOUND" {
		t.Errorf("%q", a.Body)
	}
	if _, err := h.store.Blob(t.Context(), swarm.DefaultTenant, ids["good"]); err != nil {
		t.Error(err)
	}
	if _, err := h.store.Blob(t.Context(), swarm.DefaultTenant, ids["bad"]); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("a failed action has left its blob: %v", err)
	}
}

// A turn that fails leaves no blob.
func TestBlobsOfADiscardedTurn(t *testing.T) {
	t.Parallel()
	h := oneAgent(t, nil)
	h.modules["boss"] = trapping{guest{"m1", func(v *visit) { v.call(abi.OpBlobPut, `{"data":"dGVhCg=="}`) }}}
	h.start(0, false)
	defer h.stop()
	if a, err := h.ask(); err != nil || a.Subject != mail.SubjectAgentError {
		t.Fatal(a, err)
	}
	if _, err := h.store.Blob(t.Context(), swarm.DefaultTenant, parseBlob(t, tea)); !errors.Is(err, swarm.ErrNotFound) {
		t.Errorf("left behind: %v", err)
	}
}

func (unreadable) Blob(context.Context, string, swarm.BlobID) ([]byte, error) { return nil, errDisk }

// forged is a store whose blobs are not what their addresses say.
type forged struct{ swarm.Store }

func (forged) Blob(context.Context, string, swarm.BlobID) ([]byte, error) {
	return []byte("coffee"), nil
}

func TestBlobUnreadable(t *testing.T) {
	t.Parallel()
	for _, wrap := range []func(swarm.Store) swarm.Store{
		func(s swarm.Store) swarm.Store { return unreadable{s} },
		func(s swarm.Store) swarm.Store { return forged{s} },
	} {
		h := oneAgent(t, func(v *visit) { v.tell([]string{v.call(abi.OpBlobGet, blobAt(tea))}) })
		h.wrap = wrap
		h.start(0, false)
		if got := h.told(t)[0]; got != "INTERNAL: the store cannot be read" {
			t.Error(got)
		}
		h.stop()
	}
}

// observed mixes blobs and what operators are told with effects.
func observed(v *visit) {
	m, err := mail.ParseMessage(v.in.Message)
	if err != nil {
		panic(err)
	}
	if m.Payload.Sender.Type == mail.System {
		v.tell([]string{v.call(abi.OpBlobGet, blobAt(m.Payload.Body)), v.call(abi.OpSpan, `{"name":"end"}`)})
		return
	}
	var put abi.BlobPutResponse
	lines := []string{v.call(abi.OpSpan, `{"name":"whole"}`), v.call(abi.OpMetric, `{"name":"orders","value":2}`)}
	one := v.call(abi.OpHTTPFetch, "one")
	lines = append(lines, v.call(abi.OpSpan, `{"name":"part","attributes":{"n":"1"}}`))
	_ = json.Unmarshal([]byte(v.call(abi.OpBlobPut, blobOf([]byte(blur(one))))), &put)
	lines = append(lines, v.call(abi.OpMetric, `{"name":"orders","value":1}`), v.call(abi.OpMetric, `{"name":"BAD","value":1}`))
	v.call(abi.OpHTTPFetch, "two")
	lines = append(lines, v.call(abi.OpSpan, `{"id":2}`), v.call(abi.OpSpan, `{"id":2}`))
	v.call(abi.OpBlobPut, blobOf([]byte(strings.Join(lines, "\n"))))
	v.call(abi.OpTimerSet, fmt.Sprintf(`{"after":1,"body":%q}`, put.SHA256))
	v.mail(mail.ToolAwaitMessage, obj{"reason": strings.Join(lines, " ")})
}

// The host dies at each durable write of a turn that puts blobs, reports numbers
// and marks spans. What is there in the end is what a host that lived has left,
// and no number counts twice.
func TestDeathWithBlobsMetricsAndSpans(t *testing.T) {
	t.Parallel()
	live := func(dies int64, behind bool) (*host, []string) {
		h := oneAgent(t, observed)
		if dies > 0 {
			h.start(dies, behind)
			_, _ = h.ask()
			if got := h.orders(); got != 0 && got != 3 {
				t.Errorf("write %d behind %v: %v orders in a host that died", dies, behind, got)
			}
			h.stop()
		}
		h.start(0, false)
		return h, h.told(t)
	}
	calm, want := live(0, false)
	story, writes, orders, marks := calm.story(), calm.store.n.Load(), calm.orders(), calm.spans(t)
	calm.stop()
	if orders != 3 || want[1] != `{"id":1}` || marks != "1: whole(0)! part(1){n=1}; 2: end(0)!" {
		t.Fatalf("%v orders, told %q, spans %s", orders, want, marks)
	}
	const commit = 6 // a post, two for each of two effects, and then it
	for n := int64(2); n <= writes; n++ {
		for _, behind := range []bool{false, true} {
			h, got := live(n, behind)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("write %d behind %v:\n%s", n, behind, diff)
			}
			if diff := cmp.Diff(story, h.story()); diff != "" {
				t.Errorf("write %d behind %v:\n%s", n, behind, diff)
			}
			// What a host counted is gone with it.
			wantOrders := map[bool]float64{true: 3}[n < commit || n == commit && !behind]
			if got := h.orders(); got != wantOrders {
				t.Errorf("write %d behind %v: %v orders, want %v", n, behind, got, wantOrders)
			}
			if got := h.spans(t); got != marks {
				t.Errorf("write %d behind %v: %s, want %s", n, behind, got, marks)
			}
			h.stop()
		}
	}
}

// A blob that is put before a person is asked is there once the turn has ended.
func TestBlobsOverASuspension(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(v *visit) {
		v.call(abi.OpBlobPut, `{"data":"dGVhCg=="}`)
		v.call(abi.OpMetric, `{"name":"orders","value":3}`)
		v.call(abi.OpAction, `{"name":"confirm","args":{}}`)
		v.tell([]string{v.call(abi.OpBlobGet, blobAt(tea))})
	})
	h.start(0, false)
	if a, err := h.ask(); err != nil || a.State != swarm.StatePaused {
		t.Fatal(a, err)
	}
	if _, err := h.store.Blob(t.Context(), swarm.DefaultTenant, parseBlob(t, tea)); !errors.Is(err, swarm.ErrNotFound) || h.orders() != 0 {
		t.Errorf("before the commit there are %v orders and a blob: %v", h.orders(), err)
	}
	h.restart()
	defer h.stop()
	if a, err := h.resume(one("yes")); err != nil || a.Body != `{"data":"dGVhCg=="}` || h.orders() != 3 {
		t.Errorf("%+v, %v; %v orders", a, err, h.orders())
	}
}
