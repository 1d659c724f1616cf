package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// event writes one event of a stream.
func event(id int, name string) string {
	return fmt.Sprintf("id: %d\r\nevent: %s\r\ndata: {\"timestamp\":\"2026-11-20T15:52:40.084847+00:00\",\"description\":\"d%d\",\"task_id\":\"t\",\"extra_data\":{}}\r\n\r\n", id, name, id)
}

const finish = "id: 9\r\nevent: task_complete\r\ndata: {\"timestamp\":\"x\",\"task_id\":\"t\",\"response\":\"yes\"}\r\n\r\n"

// connection is what a fake host does with one reader of a stream.
type connection struct {
	// after is what the reader is expected to have seen.
	after string
	// answer is what it gets; cut breaks the connection afterwards.
	answer string
	cut    bool
	// status, if set, refuses the reader.
	status int
}

// streaming returns a client of a host that serves the connections in order
// and reports the task as running until the last one.
func streaming(t *testing.T, o Options, conns ...connection) *Client {
	t.Helper()
	n := 0
	t.Cleanup(func() {
		if n != len(conns) {
			t.Errorf("%d connections, want %d", n, len(conns))
		}
	})
	return fakeHost(t, o, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() == "/skep/v1/tasks/a%2Fb" {
			reply(w, 200, fmt.Sprintf(`{"task_id":"a/b","is_running":%v}`, n < len(conns)))
			return
		}
		if r.URL.EscapedPath() != "/skep/v1/tasks/a%2Fb/events" || r.Header.Get("Accept") != "text/event-stream" || n == len(conns) {
			t.Errorf("call %d: %s %s, Accept %s", n, r.Method, r.URL.EscapedPath(), r.Header.Get("Accept"))
			http.Error(w, "no", 404)
			return
		}
		conn := conns[n]
		n++
		if got := r.Header.Get("Last-Event-ID"); got != conn.after {
			t.Errorf("connection %d: Last-Event-ID %q, want %q", n, got, conn.after)
		}
		if conn.status != 0 {
			reply(w, conn.status, `{"detail":"no"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		fmt.Fprint(w, conn.answer)
		if conn.cut {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
}

// follow reads a stream to its end, as cursors and names.
func follow(ctx context.Context, c *Client, after int64) (got []string, err error) {
	for e, err := range c.Stream(ctx, "a/b", after) {
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprintf("%d %s", e.Cursor, e.Name))
	}
	return got, nil
}

const ping = "event: ping\r\ndata: {\"timestamp\":\"x\",\"task_id\":\"t\"}\r\n\r\n"

var streamCases = []struct {
	name  string
	after int64
	conns []connection
	want  []string
}{
	{"in one go", 0, []connection{{"", event(1, "new_message") + ping + finish, false, 0}}, []string{"1 new_message", "9 task_complete"}},
	{"from a cursor", 5, []connection{{"5", event(6, "x") + finish, false, 0}}, []string{"6 x", "9 task_complete"}},
	{"cut between events", 0, []connection{
		{"", event(1, "a") + event(2, "b"), true, 0}, {"2", event(3, "c") + finish, false, 0},
	}, []string{"1 a", "2 b", "3 c", "9 task_complete"}},
	{"cut within an event", 0, []connection{
		{"", event(1, "a") + event(2, "b")[:20], true, 0}, {"1", event(2, "b") + finish, false, 0},
	}, []string{"1 a", "2 b", "9 task_complete"}},
	{"cut before the first event", 0, []connection{{"", "", true, 0}, {"", finish, false, 0}}, []string{"9 task_complete"}},
	{"sent twice", 0, []connection{
		{"", event(1, "a") + event(2, "b"), true, 0}, {"2", event(1, "a") + event(2, "b") + finish, false, 0},
	}, []string{"1 a", "2 b", "9 task_complete"}},
	{"the host restarts", 0, []connection{
		{"", event(1, "a"), false, 0}, {"1", "", false, 503}, {"1", finish, false, 0},
	}, []string{"1 a", "9 task_complete"}},
	{"cut after the end", 0, []connection{{"", finish, true, 0}, {"9", "", false, 0}}, []string{"9 task_complete"}},
	{"one answer, then another", 0, []connection{
		{"", finish, true, 0}, {"9", event(10, "a") + strings.Replace(finish, "9", "11", 1), false, 0},
	}, []string{"9 task_complete", "10 a", "11 task_complete"}},
	{"ended before", 9, []connection{{"9", "", false, 0}}, nil},
	{"volatile events", 0, []connection{{"", "event: emit\r\ndata: {}\r\n\r\n" + finish, false, 0}}, []string{"0 emit", "9 task_complete"}},
}

func TestStream(t *testing.T) {
	t.Parallel()
	for _, tc := range streamCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := streaming(t, Options{}, tc.conns...)
			got, err := follow(eventually(t), c, tc.after)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("err = %v; events (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStreamFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		conn connection
		want error
	}{
		{"no such task", connection{status: 404}, &Error{404, "no", ""}},
		{"an event that is too large", connection{answer: event(1, strings.Repeat("x", 5000))}, ErrTooLarge},
		{"an event that is no JSON", connection{answer: "data: x\r\n\r\n"}, ErrNotMAIL},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := streaming(t, Options{MaxEvent: 1000}, tc.conn)
			_, err := follow(eventually(t), c, 0)
			var refusal *Error
			if errors.As(err, &refusal) {
				err = tc.want
				if *refusal != *tc.want.(*Error) {
					t.Errorf("err = %v, want %v", refusal, tc.want)
				}
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("err = %v, want %v", err, tc.want)
			}
		})
	}
}

func TestStreamOfAnotherType(t *testing.T) {
	t.Parallel()
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, "{}") })
	if _, err := follow(eventually(t), c, 0); !errors.Is(err, ErrNotMAIL) {
		t.Errorf("err = %v, want ErrNotMAIL", err)
	}
}

// TestStreamIsStopped wants the reader to be able to leave at any event.
func TestStreamIsStopped(t *testing.T) {
	t.Parallel()
	c := streaming(t, Options{}, connection{"", event(1, "a") + event(2, "b") + finish, false, 0})
	n := 0
	for _, err := range c.Stream(eventually(t), "a/b", 0) {
		if n++; err != nil {
			t.Fatal(err)
		}
		break
	}
	if n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

// TestStreamIsStoppedAndCancelled wants a reader to get nothing more that leaves
// while what it reads under ends.
func TestStreamIsStoppedAndCancelled(t *testing.T) {
	t.Parallel()
	c := streaming(t, Options{}, connection{"", event(1, "a") + finish, false, 0})
	ctx, cancel := context.WithCancel(eventually(t))
	for _, err := range c.Stream(ctx, "a/b", 0) {
		if err != nil {
			t.Error(err)
		}
		cancel()
		break
	}
	if ctx.Err() == nil {
		t.Error("no event came")
	}
	cancel()
}

// TestStreamIsCancelled wants the cause of the context while nothing comes.
func TestStreamIsCancelled(t *testing.T) {
	t.Parallel()
	left := errors.New("left")
	ctx, cancel := context.WithCancelCause(eventually(t))
	defer cancel(nil)
	c := fakeHost(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, event(1, "a"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	var err error
	for e, failed := range c.Stream(ctx, "a/b", 0) {
		if err = failed; e.Cursor == 1 {
			cancel(left)
		}
	}
	if !errors.Is(err, left) {
		t.Errorf("err = %v, want the cause", err)
	}
}

// TestSilentStream wants a connection that gives no sign of life to be replaced.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	n := 0
	var told error
	c := fakeHost(t, Options{Idle: 100 * time.Millisecond, OnRetry: func(err error, _ time.Duration) { told = err }},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			if n++; n == 1 {
				<-r.Context().Done()
				return
			}
			fmt.Fprint(w, finish)
		})
	got, err := follow(eventually(t), c, 0)
	if len(got) != 1 || err != nil || n != 2 {
		t.Errorf("events %v, err %v, %d connections", got, err, n)
	}
	if told == nil || !strings.Contains(told.Error(), "silent") {
		t.Errorf("told %v, want that the stream is silent", told)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	const message = `{"id":"f2eae609-511f-40db-a52e-bacee6eaa28d","timestamp":"2026-11-20T18:54:20.087279+00:00","msg_type":"request",` +
		`"message":{"task_id":"t","request_id":"ae9de305-8e0b-43e3-84c0-2b108c93df2d","sender":{"address_type":"user","address":"u"},` +
		`"recipient":{"address_type":"agent","address":"chief"},"subject":"s","body":"b"}}`
	e, err := newEvent(frame{name: "new_message", id: "3", data: []byte(
		`{"timestamp":"x","description":"d","extra_data":{"full_message":` + message + `,"recipient":"chief","caller":"math"}}`)})
	if err != nil || e.Cursor != 3 || e.Description != "d" || e.Recipient() != "chief" || e.Caller() != "math" || e.Ends() {
		t.Errorf("event %+v, %v", e, err)
	}
	if m, ok := e.Message(); !ok || m.Payload.Body != "b" || m.Payload.Sender.Name != "u" {
		t.Errorf("message %+v, %v", m, ok)
	}
	for _, data := range []string{`{}`, `{"extra_data":{}}`, `{"extra_data":{"full_message":5}}`, `{"extra_data":[]}`, `{"extra_data":{"full_message":{"id":1}}}`} {
		e, err := newEvent(frame{name: "new_message", data: []byte(data)})
		if err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if m, ok := e.Message(); ok || e.Recipient() != "" || e.Caller() != "" {
			t.Errorf("%s: message %+v", data, m)
		}
	}
}
