package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/mcp"
)

// gatewayHost serves one agent, that asks when told, to the token alice.
func gatewayHost(t *testing.T, opt mcp.Options, seen func(*http.Request)) (url string, g *mcp.Gateway) {
	t.Helper()
	rt := gatewaytest.New()
	rt.Admit("alice", gatewaytest.User("a", "alice"))
	rt.Expose("a", gateway.ExposedAgent{Swarm: "s", Name: "calc", Entrypoint: true}, func(ctx context.Context, turn *gatewaytest.Turn) gateway.Answer {
		if turn.Ask.Body == "wait" {
			<-ctx.Done()
		}
		if turn.Ask.Body != "ask" {
			return gateway.Answer{Body: turn.Ask.Body}
		}
		text, _, _ := turn.Question(ctx, gateway.Question{ID: turn.Ask.ID + "q", Text: "What?"})
		return gateway.Answer{Body: text}
	})
	g = mcp.New(rt, opt)
	listener := gatewaytest.Listener(rt, g.Mounts())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen(r)
		listener.ServeHTTP(w, r)
	}))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		rt.Close()
		stop()
		<-ended
		server.Close()
	})
	return server.URL, g
}

// bridged runs a command as "skep mcp serve" and returns its pipes. end closes its stdin
// and waits for its end.
func bridged(t *testing.T, url, token string, command ...string) (in io.Writer, out io.ReadCloser, end func()) {
	t.Helper()
	s := newShell(map[string]string{"SKEP_URL": url, "SKEP_TOKEN": token}, command...)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	s.Env.Stdin, s.Env.Stdout = inR, outW
	code := make(chan int, 1)
	go func() {
		code <- Main(context.Background(), s.Env)
		_ = outW.Close()
	}()
	end = sync.OnceFunc(func() {
		_ = inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
		if code := <-code; code != 0 {
			t.Errorf("exit %d: %s", code, s.stderr.String())
		}
	})
	t.Cleanup(end)
	return inW, outR, end
}

// unclosed is a writer that the client's end leaves open.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// a client on stdin and stdout has what one over HTTP has, in both protocols: calls,
// questions, cancellation; its session ends with it.
func TestMCPServe(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			url, g := gatewayHost(t, mcp.Options{}, func(*http.Request) {})
			in, out, end := bridged(t, url, "alice", "mcp", "serve")
			client := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
				ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "forty-two"}}, nil
				},
			})
			s, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: out, Writer: unclosed{in}}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			for message, want := range map[string]string{"hello": "hello", "ask": "forty-two"} {
				res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "calc", Arguments: map[string]any{"message": message}})
				if err != nil || res.Content[0].(*sdk.TextContent).Text != want {
					t.Errorf("%s: %+v, %v", message, res, err)
				}
			}
			if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "other"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("an unknown tool: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			end()
			if n := g.Health().Sessions; n != 0 {
				t.Errorf("%d sessions are left", n)
			}
		})
	}
}

// lineOf reads one line.
func lineOf(t *testing.T, out io.Reader) string {
	t.Helper()
	var line []byte
	for b := make([]byte, 1); len(line) == 0 || line[len(line)-1] != '\n'; {
		if _, err := out.Read(b); err != nil {
			t.Fatal(err)
		}
		line = append(line, b[0])
	}
	return strings.TrimSpace(string(line))
}

// converse writes lines and reads as many.
func converse(t *testing.T, in io.Writer, out io.Reader, lines ...string) (answers []string) {
	t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, lineOf(t, out))
	}
	return answers
}

const opening = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// A session that the host has ended is opened again, once, and the client does not see
// it.
func TestMCPServeOpensAgain(t *testing.T) {
	t.Parallel()
	var opened, deleted atomic.Int32
	var forget atomic.Bool
	url, _ := gatewayHost(t, mcp.Options{}, func(r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") == "" {
			opened.Add(1)
		} else if r.Method == http.MethodDelete {
			deleted.Add(1)
		} else if forget.CompareAndSwap(true, false) {
			r.Header.Set("Mcp-Session-Id", "GONE")
		}
	})
	in, out, end := bridged(t, url, "alice", "mcp", "serve")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	converse(t, in, out, opening, list)
	forget.Store(true)
	if answers := converse(t, in, out, list); !strings.Contains(answers[0], `"calc"`) {
		t.Errorf("after the end of the session: %v", answers)
	}
	end()
	if opened.Load() != 2 || deleted.Load() != 1 {
		t.Errorf("%d sessions opened, %d deleted", opened.Load(), deleted.Load())
	}
}

// What is no message, and what the host refuses, is answered by an error.
func TestMCPServeTellsFailures(t *testing.T) {
	t.Parallel()
	url, _ := gatewayHost(t, mcp.Options{}, func(*http.Request) {})
	in, out, _ := bridged(t, url, "mallory", "mcp", "serve")
	answers := converse(t, in, out, "no message", opening)
	for i, want := range []string{"-32700", "401 Unauthorized"} {
		if !strings.Contains(answers[i], want) {
			t.Errorf("%s, want %s", answers[i], want)
		}
	}
}
