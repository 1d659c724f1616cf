package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/acp"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/gatewaytest"
)

// acpHost serves agents to the realm acme, over one gateway after the other.
type acpHost struct {
	url string
	rt  *gatewaytest.Runtime
	// turns counts the turns of agent "slow", which end with release.
	turns   atomic.Int32
	asked   chan struct{}
	release chan struct{}
	told    chan string

	listener atomic.Pointer[http.Handler]
	stop     func()
	// maxBody is max_body of the next gateway, 0 for the default.
	maxBody int64
}

func newACPHost(t *testing.T) *acpHost {
	t.Helper()
	h := &acpHost{rt: gatewaytest.New(), asked: make(chan struct{}, 10), release: make(chan struct{}), told: make(chan string, 10)}
	c := gatewaytest.Realm("default", "acme")
	c.May = gateway.Rights{gateway.MayAsk, gateway.MayTell, gateway.MayRelay}
	h.rt.Admit("acme-token", c)
	h.rt.AddPartner(gateway.Partner{Name: "acme", Tenant: "default", IDs: []string{"agent*"}, May: c.May})
	h.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "calc"}, gatewaytest.Echo)
	h.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "hears"}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		h.told <- turn.Ask.Body
		return gateway.Answer{}
	})
	h.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "slow"}, func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		h.turns.Add(1)
		turn.Progress("half", 0.5)
		h.asked <- struct{}{}
		<-h.release
		return gateway.Answer{Body: "done"}
	})
	h.start()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h.listener.Load()).ServeHTTP(w, r) }))
	h.url = server.URL
	t.Cleanup(func() {
		h.stop()
		server.CloseClientConnections()
		h.rt.Close()
		server.Close()
	})
	return h
}

// start starts a gateway in place of the one before, which stop ends.
func (h *acpHost) start() {
	g := acp.New(acp.Options{Runtime: h.rt, MaxBody: h.maxBody})
	listener := gatewaytest.Listener(h.rt, g.Mounts())
	h.listener.Store(&listener)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	h.stop = func() {
		cancel()
		<-ended
	}
}

// TestACPStdio: messages go over lines as over HTTP, for several agents,
// both ways. A line that is no message, or too long, is answered by an ERROR, and the
// next one is read.
func TestACPStdio(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	in, out, end := bridged(t, h.url, "acme-token", "acp", "stdio")
	q := acptest.New("REQUEST", "agentA", "calc", "7")
	answers := converse(t, in, out,
		q.Text(), q.Text(), acptest.New("QUERY", "agentB", "calc", "two\nlines").Text(), "no message", strings.Repeat("x", 1<<20+1), acptest.New("REQUEST", "mallory", "calc", "7").Text(),
	)
	for i, want := range []string{"RESPONSE", "RESPONSE", "INFORM", "ERROR", "ERROR", "ERROR"} {
		m, err := acptest.Parse([]byte(answers[i]))
		if err != nil || m.Header.Type != want {
			t.Errorf("answer %d is %s, %v; want %s", i, answers[i], err, want)
		}
	}
	if answers[0] != answers[1] || !strings.Contains(answers[4], "more than 1048576 bytes") {
		t.Errorf("got %q", answers)
	}
	told := acptest.New("INFORM", "agentA", "hears", "news")
	fmt.Fprintln(in, "  "+told.Text()+"\r\n")
	if got := <-h.told; got != "news" {
		t.Errorf("the agent is told %q", got)
	}
	relayed := acptest.New("INFORM", "agentB", "agentA", "from a colleague")
	client := acptest.Client{URL: h.url + "/acp/v1/messages", Token: "acme-token"}
	sent := make(chan error, 1)
	go func() {
		_, err := client.Send(relayed.Text()) // it is answered when the line was read
		sent <- err
	}()
	if line := lineOf(t, out); !strings.Contains(line, relayed.Header.ID) {
		t.Errorf("got %s", line)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	end()
}

// TestACPStdioMaxBody: a line above max_body gets an ERROR about it, and the next
// line is sent. A question that the host before took and this one does not is refused, too.
func TestACPStdioMaxBody(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	in, out, end := bridged(t, h.url, "acme-token", "acp", "stdio")
	waits := acptest.New("REQUEST", "agentA", "slow", strings.Repeat("x", 2048))
	fmt.Fprintln(in, waits.Text())
	<-h.asked
	h.stop()
	h.maxBody = 1024
	h.start()
	large := acptest.New("REQUEST", "agentB", "calc", strings.Repeat("x", 1024))
	large.Header.ConversationID = "sizes"
	huge := acptest.New("INFORM", "agentB", "calc", strings.Repeat("x", 1<<20))
	isRefused := func(line string, of acptest.Message, limit string) {
		t.Helper()
		got, err := acptest.Parse([]byte(line))
		if err != nil || got.Header.Type != "ERROR" || got.Header.ReplyTo != of.Header.ID || got.Header.Receiver != of.Header.Sender ||
			got.Header.ConversationID != of.Header.ConversationID || !strings.Contains(got.Body, limit) {
			t.Errorf("got %s, %v", line, err)
		}
	}
	isRefused(lineOf(t, out), waits, "1024 bytes, max_body")
	answers := converse(t, in, out, large.Text(), huge.Text(), acptest.New("REQUEST", "agentB", "calc", "8").Text())
	isRefused(answers[0], large, "1024 bytes, max_body")
	isRefused(answers[1], huge, "1048576 bytes, and no message of ACP has more")
	if !strings.Contains(answers[2], `"RESPONSE"`) {
		t.Errorf("got %s", answers[2])
	}
	close(h.release)
	end()
}

// An input without lines ends the command: it is not read for ever.
func TestACPStdioEndlessLine(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	s := newShell(map[string]string{"SKEP_URL": h.url, "SKEP_TOKEN": "acme-token"}, "acp", "stdio")
	s.Env.Stdin = endlessLine{}
	if code := Main(context.Background(), s.Env); code != exitFailed || !strings.Contains(s.stderr.String(), "more than 64 MiB") {
		t.Errorf("exit %d: %s", code, s.stderr.String())
	}
}

// endlessLine is a line without an end.
type endlessLine struct{}

func (endlessLine) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// A question that waits gets its answer over another connection, of one turn, and at the
// end of stdin.
func TestACPStdioReconnects(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	in, out, end := bridged(t, h.url, "acme-token", "acp", "stdio")
	q := acptest.New("REQUEST", "agentA", "slow", "7")
	fmt.Fprintln(in, q.Text())
	<-h.asked
	h.stop()
	h.start()
	if answers := converse(t, in, out, acptest.New("REQUEST", "agentA", "calc", "8").Text()); !strings.Contains(answers[0], `"8"`) {
		t.Errorf("got %s", answers)
	}
	close(h.release)
	m, err := acptest.Parse([]byte(lineOf(t, out)))
	if err != nil || m.Header.ReplyTo != q.Header.ID || m.Body != "done" || h.turns.Load() != 1 {
		t.Errorf("got %+v, %v after %d turns", m, err, h.turns.Load())
	}
	end()
	s := newShell(map[string]string{"SKEP_URL": h.url, "SKEP_TOKEN": "acme-token"}, "acp", "stdio")
	last := acptest.New("QUERY", "agentA", "calc", "the last line")
	s.Env.Stdin = strings.NewReader(last.Text())
	if code := Main(context.Background(), s.Env); code != 0 || !strings.Contains(s.stdout.String(), last.Header.ID) {
		t.Errorf("exit %d: %s%s", code, s.stdout.String(), s.stderr.String())
	}
}

// Progress is not the answer to a QUERY, though both are an INFORM: the question is sent
// again after a lost connection, and the end of stdin waits for the answer.
func TestACPStdioProgress(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	in, out, end := bridged(t, h.url, "acme-token", "acp", "stdio")
	q := acptest.New("QUERY", "agentA", "slow", "7")
	q.Header.Progress = "inform"
	fmt.Fprintln(in, q.Text())
	if line := lineOf(t, out); !strings.Contains(line, "half") {
		t.Fatalf("got %s", line)
	}
	h.stop()
	h.start()
	if err := in.(io.Closer).Close(); err != nil {
		t.Fatal(err)
	}
	close(h.release)
	for {
		m, err := acptest.Parse([]byte(lineOf(t, out)))
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Progress == "partial" { // the repeat gets it, too
			continue
		}
		if m.Header.Type != "INFORM" || m.Header.ReplyTo != q.Header.ID || m.Body != "done" || h.turns.Load() != 1 {
			t.Errorf("got %+v after %d turns", m, h.turns.Load())
		}
		break
	}
	end()
}

// TestACPStdioWaits: more questions than may wait at once wait for their places, and
// none is refused as busy.
func TestACPStdioWaits(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	begun, open := make(chan struct{}, 200), make(chan struct{})
	h.rt.Expose("default", gateway.ExposedAgent{Swarm: "hive", Name: "gate"}, func(context.Context, *gatewaytest.Turn) gateway.Answer {
		begun <- struct{}{}
		<-open
		return gateway.Answer{Body: "through"}
	})
	in, out, end := bridged(t, h.url, "acme-token", "acp", "stdio")
	const questions = 200
	go func() {
		for range questions {
			fmt.Fprintln(in, acptest.New("REQUEST", "agentA", "gate", "7").Text())
		}
	}()
	for range maxACPQuestions {
		<-begun
	}
	close(open)
	for n := range questions {
		if line := lineOf(t, out); !strings.Contains(line, "through") {
			t.Fatalf("answer %d is %s", n, line)
		}
	}
	end()
}

// TestACPStdioGivesUp: a question to another member of the partner, who does not
// answer, gets an ERROR in the end, and the end of stdin waits no more.
func TestACPStdioGivesUp(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	in, out, end := bridged(t, h.url, "acme-token", "acp", "stdio", "--timeout", "100ms")
	q := acptest.New("REQUEST", "agentA", "agentB", "are you there?")
	fmt.Fprintln(in, q.Text())
	for {
		m, err := acptest.Parse([]byte(lineOf(t, out)))
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Type == "REQUEST" { // it is the partner's newest connection, too
			continue
		}
		if m.Header.Type != "ERROR" || m.Header.ReplyTo != q.Header.ID || m.Header.Receiver != "agentA" || !strings.HasPrefix(m.Body, "timeout: ") || !strings.Contains(m.Body, "--timeout") {
			t.Errorf("got %+v", m)
		}
		break
	}
	end()
}

// A host that refuses for good ends the command with its reason.
func TestACPStdioEnds(t *testing.T) {
	t.Parallel()
	h := newACPHost(t)
	for _, c := range []struct {
		token, lines, want string
		code               int
	}{
		{"acme-token", strings.Repeat("nonsense\n", 16), "messages that are none", exitFailed},
		{"no-token", acptest.New("REQUEST", "agentA", "calc", "7").Text() + "\n", "401", exitRefused},
	} {
		s := newShell(map[string]string{"SKEP_URL": h.url, "SKEP_TOKEN": c.token}, "acp", "stdio")
		in, write := io.Pipe()
		s.Env.Stdin = in
		go func() { _, _ = io.WriteString(write, c.lines) }()
		if code := Main(context.Background(), s.Env); code != c.code || !strings.Contains(s.stderr.String(), c.want) {
			t.Errorf("exit %d: %s", code, s.stderr.String())
		}
		_ = in.Close()
	}
}
