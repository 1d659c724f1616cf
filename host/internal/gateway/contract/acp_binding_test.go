package contract_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"skep/host/internal/cli"
	"skep/host/internal/gateway/acp/acptest"
	"skep/host/internal/gateway/acp/broker"
	"skep/host/internal/gateway/contract"
	"skep/host/internal/hosttest"
)

// TestACPBindings: what the contract of gateways has about bindings,
// held by ACP over WebSocket, over lines of standard streams, and over a real broker.
func TestACPBindings(t *testing.T) {
	t.Parallel()
	b := hosttest.StartMosquitto(t, "allow_anonymous true\n", nil)
	p := acpProtocol()
	p.Table, p.EachPartner = fmt.Sprintf("[gateways.acp.mqtt]\nbroker = \"mqtt://%s\"\n", b.Addr), "topics = \"acp/v1/PARTNER\"\n"
	without := map[string]string{
		"03/right": "what only tells gets no ERROR when it is refused",
		"28/size":  "a connection may end before its reason is read, and a broker drops what is too large",
		"28/asks":  "it is the runtime's limit; over a broker the message waits there",
		"28/rate":  "it is the runtime's limit; over a broker the message waits there",
	}
	open := maps.Clone(without)
	open["23"] = "a partner without a connection has a mailbox, which is read over HTTP"
	contract.RunBindings(t, p, []contract.Binding{
		binding("socket", open, openSocket), binding("lines", open, openLines), binding(brokerName, without, openTopics(b.Addr)),
	})
}

// brokerName is the binding over a broker.
const brokerName = "mqtt"

// opener opens a connection of a realm with the host at a URL. take gets what comes, and
// write sends a text as an agent.
type opener func(t testing.TB, url, token string, take func(text string)) (write func(ctx context.Context, agent, text string) error)

func binding(name string, without map[string]string, open opener) contract.Binding {
	return contract.Binding{
		Name: name, Without: without, Outbox: name == brokerName,
		Dial: func(t testing.TB, url, token string) contract.Client { return newWire(t, open, url, token, nil) },
		Serve: func(t testing.TB, url, token string, handle contract.Handler) (stop func()) {
			w := newWire(t, open, url, token, handle)
			if name != brokerName { // the host has the connection when it has answered there
				if _, err := w.Send(t.Context(), contract.Message{ID: uuid.NewString(), Kind: contract.Tell, To: "math", Text: "hello"}); err != nil {
					t.Fatal(err)
				}
			}
			return func() {}
		},
	}
}

// wire is a realm's agent on a connection over which messages go both ways.
type wire struct {
	acpClient
	t     testing.TB
	open  opener
	write func(ctx context.Context, agent, text string) error
	// asked gets messages that answer nothing, in order: what reads them must not wait for
	// a handler. It is nil without one.
	asked chan string

	mu      sync.Mutex
	waiting map[string]chan acptest.Reply // by the id of the message; "" is an ERROR about what has none
}

func newWire(t testing.TB, open opener, url, token string, handle contract.Handler) *wire {
	t.Helper()
	w := &wire{
		acpClient: acpClient{acptest.Client{URL: url + "/acp/v1/messages", Token: token}},
		t:         t, open: open, waiting: map[string]chan acptest.Reply{},
	}
	if handle != nil {
		w.asked = make(chan string, 1000)
	}
	w.write = open(t, url, token, w.take)
	running(t, func(ctx context.Context) {
		for {
			select {
			case text := <-w.asked:
				w.answer(ctx, text, handle)
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

// take takes a message of the host.
func (w *wire) take(text string) {
	m, err := acptest.Parse([]byte(text))
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	id := m.Header.ReplyTo
	if w.waiting[id] == nil && m.Header.Type == "ERROR" {
		id = ""
	}
	got := w.waiting[id]
	delete(w.waiting, id)
	w.mu.Unlock()
	switch {
	case got != nil:
		got <- acptest.Reply{Status: statusOf(m), Text: text, Message: &m}
	case w.asked != nil && m.Header.ReplyTo == "":
		w.asked <- text
	}
}

// statusOf is the status that a message would have over HTTP.
func statusOf(m acptest.Message) int {
	if m.Header.Type != "ERROR" {
		return http.StatusOK
	}
	if fault, err := acptest.ParseFault(m); err == nil && acpReasons[fault.Code] != "" {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// answer lets the foreign agent answer.
func (w *wire) answer(ctx context.Context, text string, handle contract.Handler) {
	m, err := acptest.Parse([]byte(text))
	if err != nil {
		w.t.Error(err)
	}
	if _, answer := answerACP(ctx, m, hopsOf(w.t, []byte(text)), handle); answer != nil {
		if err := w.write(ctx, answer.Header.Sender, answer.Text()); err != nil {
			w.t.Error(err)
		}
	}
}

// Send implements [contract.Client]. What is told asks for an ACKNOWLEDGE.
func (w *wire) Send(ctx context.Context, m contract.Message) (contract.State, error) {
	if m.Kind == contract.Tell {
		m.Extra = map[string]any{"x_ack": "requested"}
	}
	from := w.sender()
	if strings.HasPrefix(m.From, "depot-") {
		from = m.From
	}
	return w.exchange(ctx, m.ID, from, w.Encode(m))
}

// Post implements [contract.Client], over a connection of its own: one that has brought
// much that is no message is ended.
func (w *wire) Post(ctx context.Context, body []byte) (contract.State, error) {
	host, _, _ := strings.Cut(w.URL, "/acp/")
	return newWire(w.t, w.open, host, w.Token, nil).exchange(ctx, "", w.sender(), body)
}

// exchange sends a text and waits for what comes about it.
func (w *wire) exchange(ctx context.Context, id, from string, text []byte) (contract.State, error) {
	got := make(chan acptest.Reply, 1)
	w.mu.Lock()
	w.waiting[id] = got
	w.mu.Unlock()
	if err := w.write(ctx, from, string(text)); err != nil {
		return contract.State{}, err
	}
	select {
	case r := <-got:
		return acpState(r, nil)
	case <-ctx.Done():
		return contract.State{}, context.Cause(ctx)
	}
}

// running lets a function run until the end of the test.
func running(t testing.TB, run func(ctx context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

func openSocket(t testing.TB, url, token string, take func(string)) func(context.Context, string, string) error {
	s, err := acptest.Dial(t.Context(), url, token)
	if err != nil {
		t.Fatal(err)
	}
	running(t, func(ctx context.Context) {
		defer s.Close()
		for {
			text, err := s.ReadText(ctx)
			if err != nil {
				return
			}
			take(string(text))
		}
	})
	return func(ctx context.Context, _, text string) error { return s.Send(ctx, text) }
}

// openLines runs skep acp stdio.
func openLines(t testing.TB, url, token string, take func(string)) func(context.Context, string, string) error {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	vars := map[string]string{"SKEP_URL": url, "SKEP_TOKEN": token}
	running(t, func(ctx context.Context) {
		var told hosttest.LogBuffer
		code := cli.Main(ctx, cli.Env{
			Args: []string{"acp", "stdio"}, Stdin: inR, Stdout: outW, Stderr: &told,
			LookupEnv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
		})
		if _ = outW.Close(); code != 0 && ctx.Err() == nil {
			t.Errorf("skep acp stdio ends with %d: %s", code, told.Bytes())
		}
	})
	running(t, func(context.Context) {
		for lines := bufio.NewReader(outR); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			take(line)
		}
	})
	t.Cleanup(func() {
		_ = inW.Close()
		_ = outR.Close()
	})
	return func(_ context.Context, _, text string) error {
		_, err := io.WriteString(inW, text+"\n")
		return err
	}
}

// tokenName is the partner in a token.
var tokenName = regexp.MustCompile(`-realm-(.*)-\d+$`)

func openTopics(addr string) opener {
	return func(t testing.TB, _, token string, take func(string)) func(context.Context, string, string) error {
		topics := "acp/v1/" + tokenName.FindStringSubmatch(token)[1]
		conn := broker.New(broker.Options{
			URL: "mqtt://" + addr, ClientID: uuid.NewString(), Filter: topics + "/+/in", MaxPacket: 2 << 20, Log: slog.New(slog.DiscardHandler),
			Take: func(_ context.Context, m broker.Message) bool {
				take(string(m.Payload))
				return true
			},
		})
		running(t, conn.Run)
		hosttest.Eventually(t, "it is at the broker", func() bool { return conn.State() == nil })
		return func(ctx context.Context, agent, text string) error {
			_, err := conn.Publish(ctx, topics+"/"+agent+"/out", "application/json", []byte(text))
			return err
		}
	}
}
