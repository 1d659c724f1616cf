package uamp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/host/internal/gateway/uamp/stream"
)

// open opens a stream without waiting for its end.
func (h *hive) open(t *testing.T, path string, header ...string) (next func() (string, bool), end func()) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer lab-token")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rsp, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if kind := rsp.Header.Get("Content-Type"); rsp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		t.Fatalf("%d %s", rsp.StatusCode, kind)
	}
	in := bufio.NewScanner(rsp.Body)
	return func() (string, bool) {
		for in.Scan() {
			if data, is := strings.CutPrefix(in.Text(), "data: "); is {
				return data, true
			}
		}
		return "", false
	}, func() { _ = rsp.Body.Close() }
}

// TestStreamed (U-051, U-060, U-063, U-065, U-084, V-U24, V-U25): chunks and progress have their
// numbers while they are made and on every read; a response has as many as the window, and the next one
// goes on after Last-Event-ID.
func TestStreamed(t *testing.T) {
	t.Parallel()
	h := newHive(t, func(o *uamp.Options) { o.MaxWindow = 16 })
	const chunks = 40
	more := make(chan struct{})
	h.expose("calc", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		turn.Progress("", 0.1) // C.2 begins with it
		<-more
		turn.Progress("working", 0.5)
		for i := 2; i < chunks; i++ {
			turn.Chunk(fmt.Sprintf("chunk %d ", i))
		}
		return gateway.Answer{Body: "all of it", At: time.Unix(1e9, 0)}
	})
	at := h.take(t, newAsk("calc", "go")).location
	next, end := h.open(t, at)
	first, _ := next()
	close(more)
	end()
	if d := delta(t, first); d.Seq != 0 || d.Type != envelope.DeltaProgress || string(d.Payload) != `{"pct":10}` {
		t.Error(first)
	}
	whole, a := []string{}, stream.NewAssembly(16, 1<<20)
	for last := -1; len(whole) <= chunks; {
		var header []string
		if last >= 0 {
			header = []string{"Last-Event-ID", fmt.Sprint(last)}
		}
		lines := h.read(t, at, header...)
		if want := min(16, chunks+1-len(whole)); len(lines) != want {
			t.Fatalf("%d deltas, want %d", len(lines), want)
		}
		for _, line := range lines {
			if _, ok, err := a.Add(delta(t, line)); err != nil || !ok {
				t.Fatalf("%s: %v", line, err)
			}
		}
		whole = append(whole, lines...)
		last = len(whole) - 1
	}
	if d := delta(t, whole[1]); d.Type != envelope.DeltaProgress || string(d.Payload) != `{"pct":50,"text":"working"}` {
		t.Error(whole[1])
	}
	if whole[0] != first || delta(t, whole[chunks]).Type != envelope.DeltaDone || !strings.Contains(whole[chunks], `"answer":"all of it"`) {
		t.Error(whole[0], whole[chunks])
	}
	for range 20 {
		from := rand.IntN(chunks + 1)
		for i, line := range h.read(t, fmt.Sprintf("%s?from=%d", at, from)) {
			if line != whole[from+i] {
				t.Errorf("delta %d is %s, and was %s", from+i, line, whole[from+i])
			}
		}
	}
	if r := h.call(t, http.MethodGet, at, "lab-token", "", "Last-Event-ID", fmt.Sprint(chunks)); r.status != http.StatusNoContent {
		t.Errorf("after the end: %d %s", r.status, r.text)
	}
	unsigned(t, "beyond the end", h.call(t, http.MethodGet, at, "lab-token", "", "Last-Event-ID", fmt.Sprint(chunks+1)), envelope.MissingSeq)
	unsigned(t, "no number", h.call(t, http.MethodGet, at, "lab-token", "", "Last-Event-ID", "x"), envelope.Malformed)
	unsigned(t, "no credential", h.call(t, http.MethodGet, at, "", ""), envelope.Unauthenticated)
	unsigned(t, "a user", h.call(t, http.MethodGet, at, "user-token", ""), envelope.Unauthorized)
	h.rt.Admit("shop-token", gatewaytest.Realm("default", "shop"))
	unsigned(t, "another realm", h.call(t, http.MethodGet, at, "shop-token", ""), envelope.UnknownRecipient)
	unsigned(t, "another id", h.call(t, http.MethodGet, at+"0", "lab-token", ""), envelope.UnknownRecipient)
}

// TestSmallWindow (U-010, U-061, U-066): the envelope's own window holds where it is smaller.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	h.expose("calc", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		for range 5 {
			turn.Chunk("x")
		}
		return gateway.Answer{Body: "done"}
	})
	e := newAsk("calc", "go")
	e.Window = 2
	at := h.take(t, e).location
	for _, want := range []struct {
		from string
		n    int
	}{{"0", 2}, {"3", 2}, {"5", 1}} {
		if lines := h.read(t, at+"?from="+want.from); len(lines) != want.n {
			t.Errorf("from %s: %v", want.from, lines)
		}
	}
}

// TestBlob (V-U23, U-067, U-068): the document's example C.2. A blob of an answer comes in
// chunks, which are the same on each read and whole together.
func TestBlob(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	image := bytes.Repeat([]byte("\x89PNG and so on "), 10_000)
	h.expose("calc", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		return gateway.Answer{Body: "a cat", Parts: []gateway.PartRef{turn.Part("cat", "image/png", image)}}
	})
	at := h.take(t, newAsk("calc", "512×512 cat")).location
	lines := h.read(t, at)
	a := stream.NewAssembly(64, 1<<20)
	var got []byte
	var done struct {
		Mime string
		Size int
	}
	for _, line := range lines {
		p, ok, err := a.Add(delta(t, line))
		if err != nil || !ok {
			t.Fatalf("%s: %v", line, err)
		}
		got = append(got, p.Data...)
		if p.Type == envelope.DeltaDone && json.Unmarshal(p.Payload, &done) != nil {
			t.Error(line)
		}
	}
	if !bytes.Equal(got, image) || done.Mime != "image/png" || done.Size != len(image) {
		t.Errorf("%d bytes, %+v", len(got), done)
	}
	if again := h.read(t, at); strings.Join(again, "") != strings.Join(lines, "") {
		t.Error("another read has other deltas")
	}
	h.rt.FailNext("Blob", io.ErrUnexpectedEOF)
	unsigned(t, "the store fails", h.call(t, http.MethodGet, at, "lab-token", ""), envelope.Internal)
}

// TestFailures (U-104, contract case 16): what an agent could not do is an error of the
// stream, without what is internal.
func TestFailures(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	for outcome, want := range map[gateway.Outcome]string{
		gateway.Failed:   `{"code":"5.00","message":"It failed.","retry":true}`,
		gateway.TimedOut: `{"code":"4.08","message":"It failed.","retry":false}`,
	} {
		h.expose("calc", func(context.Context, *gatewaytest.Turn) gateway.Answer {
			return gateway.Answer{Outcome: outcome, Body: "It failed."}
		})
		lines := h.read(t, h.take(t, newAsk("calc", "x")).location)
		if d := delta(t, lines[0]); d.Type != envelope.DeltaError || string(d.Payload) != want {
			t.Errorf("%s: %s", outcome, lines[0])
		}
	}
}

// TestRevoked (contract case 14): a stream ends with its reader's token, and with the host.
func TestRevoked(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	at := h.take(t, newAsk("slow", "x")).location
	next, end := h.open(t, at)
	defer end()
	h.rt.Revoke("lab-token")
	if line, ok := next(); ok {
		t.Error(line)
	}
	unsigned(t, "a revoked token", h.call(t, http.MethodGet, at, "lab-token", ""), envelope.Unauthenticated)
	h = newHive(t, nil)
	ctx, stop := context.WithCancel(t.Context())
	next, end = h.open(t, h.take(t, newAsk("slow", "x")).location)
	defer end()
	ran := make(chan error, 1)
	go func() { ran <- h.g.Run(ctx) }()
	stop()
	if line, ok := next(); ok {
		t.Error(line)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestHTTP1 (U-040, D-U8): over TLS the protocol is HTTP/2.
func TestHTTP1(t *testing.T) {
	t.Parallel()
	h := newHive(t, nil)
	text := signedBy(t, h.own, newAsk("calc", "x"))
	for _, http2 := range []bool{false, true} {
		status, proto := overTLS(t, h, http2, text)
		if want := map[bool]int{false: http.StatusHTTPVersionNotSupported, true: http.StatusAccepted}[http2]; status != want || http2 != (proto == 2) {
			t.Errorf("HTTP/%d: %d", proto, status)
		}
	}
}
