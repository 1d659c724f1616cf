package refclient

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listen answers one request with a text and hands the request on.
func listen(t *testing.T, answer string) (address string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests := make(chan string, 1)
	go func() {
		defer l.Close()
		conn, err := l.Accept()
		if err != nil {
			requests <- err.Error()
			return
		}
		defer conn.Close()
		r, text := bufio.NewReader(conn), ""
		for !strings.Contains(text, "\r\n\r\n") {
			line, err := r.ReadString('\n')
			if text += line; err != nil {
				break
			}
		}
		if _, length, ok := strings.Cut(text, "Content-Length: "); ok {
			n := 0
			for _, d := range length[:strings.Index(length, "\r")] {
				n = n*10 + int(d-'0')
			}
			body := make([]byte, n)
			_, _ = io.ReadFull(r, body)
			text += string(body)
		}
		_, _ = io.WriteString(conn, answer)
		requests <- text
	}()
	return l.Addr().String(), requests
}

const (
	okay = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	task = "t-1"
)

// The bytes of contract 9.3.
func TestBytes(t *testing.T) {
	t.Parallel()
	ctx, id := t.Context(), task
	for name, c := range map[string]struct {
		call func(c *Client) error
		want string
	}{
		"ping": {func(c *Client) error { _, err := c.Ping(ctx); return err },
			"GET / HTTP/1.1\r\nHost: ADDRESS\r\nAccept: application/json\r\nUser-Agent: MAIL-Client/1.3.6 (github.com/charonlabs/mail)\r\n" +
				"Authorization: Bearer K\r\nAccept-Encoding: gzip, deflate\r\n\r\n"},
		"post_message": {func(c *Client) error {
			_, err := c.PostMessage(ctx, Post{Body: "7 € \"ü\"\n😀", Subject: "New Message", Type: "request"})
			return err
		}, "POST /message HTTP/1.1\r\nHost: ADDRESS\r\nAccept: application/json\r\nUser-Agent: MAIL-Client/1.3.6 (github.com/charonlabs/mail)\r\n" +
			"Authorization: Bearer K\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: 213\r\nContent-Type: application/json\r\n\r\n" +
			`{"subject": "New Message", "body": "7 \u20ac \"\u00fc\"\n\ud83d\ude00", "msg_type": "request", "entrypoint": null, "show_events": false, "task_id": null, "resume_from": null, "kwargs": {}}`},
		"get_task": {func(c *Client) error { _, err := c.GetTask(ctx, id); return err },
			"GET /task HTTP/1.1\r\nHost: ADDRESS\r\nAccept: application/json\r\nUser-Agent: MAIL-Client/1.3.6 (github.com/charonlabs/mail)\r\n" +
				"Authorization: Bearer K\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: 18\r\nContent-Type: application/json\r\n\r\n" +
				`{"task_id": "t-1"}`},
		"register_swarm": {func(c *Client) error {
			_, err := c.RegisterSwarm(ctx, "depot", "https://depot.example", &id, true, Object{{"a", []any{1, 2.5, nil, true}}})
			return err
		}, "POST /swarms HTTP/1.1\r\nHost: ADDRESS\r\nAccept: application/json\r\nUser-Agent: MAIL-Client/1.3.6 (github.com/charonlabs/mail)\r\n" +
			"Authorization: Bearer K\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: 128\r\nContent-Type: application/json\r\n\r\n" +
			`{"name": "depot", "base_url": "https://depot.example", "volatile": true, "auth_token": "t-1", "metadata": {"a": [1, 2.5, null, true]}}`},
	} {
		address, got := listen(t, okay)
		if err := c.call(&Client{Address: address, Key: "K"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want := strings.Replace(c.want, "ADDRESS", address, 1)
		sent := <-got
		if diff := cmp.Diff(lengthless(want), lengthless(sent)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// lengthless leaves the one header out that follows from the body.
func lengthless(text string) string {
	before, rest, ok := strings.Cut(text, "Content-Length: ")
	if !ok {
		return text
	}
	return before + rest[strings.Index(rest, "\r\n")+2:]
}

func TestStreamPayload(t *testing.T) {
	t.Parallel()
	want := `{"subject": "s", "body": "b", "msg_type": "request", "entrypoint": "e", "stream": true, "task_id": "t-1", "resume_from": "user_response", "kwargs": {"max_steps": 3}}`
	e, id, from := "e", task, "user_response"
	p := Post{Body: "b", Subject: "s", Type: "request", Entrypoint: &e, Task: &id, Resume: &from, Kwargs: Object{{"max_steps", 3}}}
	if got := Dumps(p.payload(true)); got != want {
		t.Errorf("%s", got)
	}
}

// Events are split by CRLF CRLF only, however they arrive (contract 13.1).
func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		events []Event
		err    bool
	}{
		"event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n": {[]Event{{"a", "1"}, {"b", "2"}}, false},
		"data: 1\r\n\r\n":                     {[]Event{{"message", "1"}}, false},
		"event: a\r\n\r\n":                    {[]Event{{"a", ""}}, false},
		"id: 5\r\nevent: a\r\ndata:x\r\n\r\n": {[]Event{{"a", "x"}}, false},
		"data: 1\r\ndata: 2\r\n\r\n":          {[]Event{{"message", "1\n2"}}, false},
		": ping\r\n\r\n":                      {nil, false},
		"event: a\ndata: 1\n\n":               {nil, true},
		"event: a\r\ndata: 1\r\n":             {nil, true},
		"":                                    {nil, false},
	} {
		var got []Event
		err := split(&slow{text}, func(e Event) bool { got = append(got, e); return true })
		if diff := cmp.Diff(want.events, got); diff != "" || (err != nil) != want.err {
			t.Errorf("%q: %v (-want +got)\n%s", text, err, diff)
		}
	}
}

// slow gives a byte at a time.
type slow struct{ left string }

func (s *slow) Read(p []byte) (int, error) {
	if s.left == "" {
		return 0, io.EOF
	}
	p[0], s.left = s.left[0], s.left[1:]
	return 1, nil
}

func TestErrors(t *testing.T) {
	t.Parallel()
	const refused = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	const html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}"
	for _, stream := range []bool{false, true} {
		call := func(answer string) error {
			address, got := listen(t, answer)
			defer func() { <-got }()
			c := &Client{Address: address}
			if stream {
				return c.PostMessageStream(context.Background(), Post{}, func(Event) bool { return true })
			}
			_, err := c.Ping(context.Background())
			return err
		}
		var refusal *Error
		if err := call(refused); !errors.As(err, &refusal) || refusal.Status != 401 || refusal.Error() != `401, message="Unauthorized"` {
			t.Errorf("%v", err)
		}
		if err := call(html); err == nil || !strings.Contains(err.Error(), "text/html") {
			t.Errorf("%v", err)
		}
		if err := call("nonsense\r\n\r\n"); err == nil {
			t.Error("nonsense is an answer")
		}
	}
}
