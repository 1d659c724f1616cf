package uamp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/gatewaytest"
	"skep/host/internal/gateway/uamp/envelope"
	"skep/spec/gateways/uamp/uamppb"
)

// pipes is a listener in memory. Connections of the kernel would stop the time of a bubble
// (https://pkg.go.dev/testing/synctest#hdr-Blocking).
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements [net.Listener].
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements [net.Listener].
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	own, other := net.Pipe()
	select {
	case p.conns <- other:
		return own, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// newPipedHive is a hive that is reached in memory, with an agent "counts" that shows a chunk every
// ten seconds for five minutes. done is closed when it has ended.
func newPipedHive(t *testing.T) (h *hive, l *pipes, done <-chan struct{}) {
	t.Helper()
	h, l = newUnstartedHive(t, nil), newPipes()
	_ = h.server.Listener.Close()
	h.server.Listener = l
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) }}
	h.client = &http.Client{Transport: tr}
	h.server.Start()
	t.Cleanup(tr.CloseIdleConnections)
	ended := make(chan struct{})
	h.expose("counts", func(_ context.Context, turn *gatewaytest.Turn) gateway.Answer {
		defer close(ended)
		for n := range 30 {
			turn.Chunk(fmt.Sprintf("%d %s", n, strings.Repeat("x", 1<<10)))
			time.Sleep(10 * time.Second)
		}
		return gateway.Answer{Body: "counted"}
	})
	return h, l, ended
}

// windowed reads a stream. next acknowledges the deltas before one, and returns those that come
// until the window is used up.
type windowed interface {
	next(t *testing.T, from int) []string
	// unasked are the deltas that have come since.
	unasked() []string
}

// eventWindows reads by server-sent events: a response is a window.
type eventWindows struct {
	h    *hive
	path string
}

func (r eventWindows) next(t *testing.T, from int) []string {
	t.Helper()
	if from == 0 {
		return r.h.read(t, r.path)
	}
	return r.h.read(t, r.path, "Last-Event-ID", strconv.Itoa(from-1))
}

func (eventWindows) unasked() []string { return nil } // there is no response

// frameWindows reads by frames: of a WebSocket, or of a call of gRPC.
type frameWindows struct {
	ack  func(seq int)
	mu   sync.Mutex
	come []string
}

func (r *frameWindows) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.come = append(r.come, text)
}

func (r *frameWindows) unasked() (list []string) {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	list, r.come = r.come, nil
	return list
}

func (r *frameWindows) next(_ *testing.T, from int) []string {
	r.ack(from - 1)
	time.Sleep(time.Minute)
	return r.unasked()
}

func overEvents(_ *testing.T, h *hive, _ *pipes, stream string) windowed {
	return eventWindows{h, "/v1/stream/" + stream}
}

func overSocket(t *testing.T, h *hive, _ *pipes, stream string) windowed {
	p := h.dial(t, "lab-token")
	r := &frameWindows{ack: func(seq int) { p.ack(stream, seq) }}
	go func() {
		for m, err := p.next(); err == nil; m, err = p.next() {
			if m.Seq != nil {
				r.add(m.text)
			}
		}
	}()
	return r
}

func overCall(t *testing.T, h *hive, l *pipes, stream string) windowed {
	t.Helper()
	c, ctx := h.overGRPC(t, "lab-token", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.dial(ctx) }))
	on, err := c.Stream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r := &frameWindows{ack: func(seq int) {
		if err := on.Send(&uamppb.Frame{Frame: &uamppb.Frame_Delta{Delta: &uamppb.Delta{
			StreamId: stream, DeltaSeq: uint32(max(0, seq)), Ts: "2025-08-06T17:00:00Z", Type: "progress", Payload: fmt.Appendf(nil, `{"ack":%d}`, seq),
		}}}); err != nil {
			t.Error(err)
		}
	}}
	go func() {
		for f, err := on.Recv(); err == nil; f, err = on.Recv() {
			if d := f.GetDelta(); d != nil {
				r.add(string(d.GetJson()))
			}
		}
	}()
	return r
}

// TestStoppedReader (U-061, U-064, U-065, V-U24, V-U39): a window that is used up stops the
// sending and not the agent. A reader that acknowledges nothing for ten minutes has everything
// afterwards, in the bytes that another reader gets.
func TestStoppedReader(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, *hive, *pipes, string) windowed{"events": overEvents, "WebSocket": overSocket, "gRPC": overCall} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkStoppedReader(t, open) }) })
	}
}

func checkStoppedReader(t *testing.T, open func(*testing.T, *hive, *pipes, string) windowed) {
	t.Helper()
	h, l, done := newPipedHive(t)
	e := newAsk("counts", "go")
	e.Window = 3
	h.take(t, e)
	stream := "str-" + string(e.ID)
	r := open(t, h, l, stream)
	got := r.next(t, 0)
	if len(got) != 3 {
		t.Fatalf("a window of 3 has %d deltas", len(got))
	}
	time.Sleep(10 * time.Minute)
	select {
	case <-done:
	default:
		t.Error("the agent waits for the window")
	}
	if more := r.unasked(); len(more) > 0 {
		t.Errorf("%d deltas come without an acknowledgement", len(more))
	}
	for len(got) < 31 {
		more := r.next(t, len(got))
		if want := min(3, 31-len(got)); len(more) != want {
			t.Fatalf("after %d come %d deltas, want %d", len(got), len(more), want)
		}
		got = append(got, more...)
	}
	var again []string
	for len(again) < 31 {
		again = append(again, overEvents(t, h, l, stream).next(t, len(again))...)
	}
	if !slices.Equal(got, again) {
		t.Errorf("another reader gets\n%s\nnot\n%s", strings.Join(again, "\n"), strings.Join(got, "\n"))
	}
	if d := delta(t, got[30]); d.Type != envelope.DeltaDone {
		t.Errorf("the end is %s", got[30])
	}
}

// TestDeafReader (U-064, U-065): a reader that takes no bytes for ten minutes holds up no agent,
// and has everything when it goes on, by another connection where the host has given up on the first.
func TestDeafReader(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, h *hive, stream string, from int) (next func() (string, error), end func()){
		"events": func(t *testing.T, h *hive, stream string, from int) (func() (string, error), func()) {
			t.Helper()
			var header []string
			if from > 0 {
				header = []string{"Last-Event-ID", strconv.Itoa(from - 1)}
			}
			line, end := h.open(t, "/v1/stream/"+stream, header...)
			return func() (string, error) {
				text, ok := line()
				if !ok {
					return "", errors.New("the response has ended")
				}
				return text, nil
			}, end
		},
		"WebSocket": func(t *testing.T, h *hive, stream string, from int) (func() (string, error), func()) {
			t.Helper()
			p := h.dial(t, "lab-token")
			p.ack(stream, from-1)
			return func() (string, error) {
				m, err := p.next()
				for err == nil && m.Seq == nil {
					m, err = p.next()
				}
				return m.text, err
			}, func() { _ = p.conn.CloseNow() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _, done := newPipedHive(t)
				e := newAsk("counts", "go")
				h.take(t, e)
				stream := "str-" + string(e.ID)
				next, end := open(t, h, stream, 0)
				var got []string
				for len(got) < 31 {
					text, err := next()
					if err != nil {
						end()
						next, end = open(t, h, stream, len(got))
						continue
					}
					if got = append(got, text); len(got) == 1 {
						time.Sleep(10 * time.Minute)
						select {
						case <-done:
						default:
							t.Error("the agent waits for its reader")
						}
					}
				}
				end()
				if again := h.read(t, "/v1/stream/"+stream); !slices.Equal(got, again) {
					t.Errorf("another reader gets\n%s\nnot\n%s", strings.Join(again, "\n"), strings.Join(got, "\n"))
				}
			})
		})
	}
}
