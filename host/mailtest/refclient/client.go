package refclient

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// agent is how the client names itself.
const agent = "MAIL-Client/1.3.6 (github.com/charonlabs/mail)"

// Client calls one server.
type Client struct {
	// Address is host:port.
	Address string
	// Key is shown with every call, unless it is empty.
	Key string
}

// Error is a status from 400 on. The reference's client drops the detail.
type Error struct {
	Status int
	Reason string
	Body   string
}

// Error is worded as the reference's.
func (e *Error) Error() string { return fmt.Sprintf("%d, message=%q", e.Status, e.Reason) }

// head writes a request line and header in the reference's order.
func (c *Client) head(method, path, accept, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nUser-Agent: %s\r\n", method, path, c.Address, accept, agent)
	if c.Key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", c.Key)
	}
	b.WriteString("Accept-Encoding: gzip, deflate\r\n")
	if body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\nContent-Type: application/json\r\n", len(body))
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// exchange sends a request and reads the head of the answer, whose body the
// caller closes.
func (c *Client) exchange(ctx context.Context, request string) (*http.Response, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if _, err = io.WriteString(conn, request); err != nil {
		stop()
		return nil, err
	}
	rsp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		stop()
		_ = conn.Close()
		return nil, err
	}
	if rsp.Header.Get("Content-Encoding") == "gzip" {
		// aiohttp decodes what it accepts.
		zip, err := gzip.NewReader(rsp.Body)
		if err != nil {
			stop()
			_ = conn.Close()
			return nil, err
		}
		rsp.Body = zip
	}
	rsp.Body = &body{rsp.Body, conn, stop}
	return rsp, nil
}

// body ends the connection with the answer.
type body struct {
	io.ReadCloser
	conn net.Conn
	stop func() bool
}

func (b *body) Close() error {
	b.stop()
	_ = b.ReadCloser.Close()
	return b.conn.Close()
}

// call makes a call that is answered with JSON. A payload of nil is no body.
func (c *Client) call(ctx context.Context, method, path string, payload any, to any) error {
	text := ""
	if payload != nil {
		text = Dumps(payload)
	}
	rsp, err := c.exchange(ctx, c.head(method, path, "application/json", text))
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	raw, err := io.ReadAll(rsp.Body)
	if err != nil {
		return err
	}
	if rsp.StatusCode >= 400 {
		_, reason, _ := strings.Cut(rsp.Status, " ")
		return &Error{rsp.StatusCode, reason, string(raw)}
	}
	if kind := rsp.Header.Get("Content-Type"); kind != "application/json" {
		return fmt.Errorf("the answer is of type %q", kind)
	}
	return json.Unmarshal(raw, to)
}
