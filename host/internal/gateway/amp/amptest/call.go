package amptest

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Call is a call of the gRPC service without a library of gRPC: frames and the one field of a
// message are written by hand, as
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md and
// https://protobuf.dev/programming-guides/encoding/ have them.
type Call struct {
	transport *http.Transport
	out       *io.PipeWriter
	came      chan called
	resp      *http.Response
	body      *bufio.Reader
}

// called is the response of the call.
type called struct {
	resp *http.Response
	err  error
}

// rawJSON is the tag of the field raw_json: number 1, with a length.
const rawJSON = 0x0a

// BeginCall begins a call of a method at a host that speaks HTTP/2 without TLS.
func BeginCall(ctx context.Context, host, method string, header http.Header) (*Call, error) {
	messages, out := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, host+"/amp.v1.AgentMesh/"+method, messages)
	if err != nil {
		return nil, err
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/grpc+proto")
	req.Header.Set("Te", "trailers")
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: two}
	c := &Call{transport: transport, out: out, came: make(chan called, 1)}
	go func() {
		resp, err := transport.RoundTrip(req)
		if err != nil {
			_ = messages.CloseWithError(err)
		}
		c.came <- called{resp, err}
	}()
	return c, nil
}

// Send sends a text as a message.
func (c *Call) Send(text string) error {
	message := append(binary.AppendUvarint([]byte{rawJSON}, uint64(len(text))), text...)
	_, err := c.out.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
	return err
}

// CloseSend sends no more.
func (c *Call) CloseSend() error { return c.out.Close() }

// Read reads the text of the next message, io.EOF at the end of the call.
func (c *Call) Read() (string, error) {
	if c.resp == nil {
		got := <-c.came
		if got.err != nil {
			return "", got.err
		}
		c.resp, c.body = got.resp, bufio.NewReader(got.resp.Body)
	}
	var head [5]byte
	if _, err := io.ReadFull(c.body, head[:]); err != nil {
		return "", err
	}
	message := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(c.body, message); err != nil {
		return "", err
	}
	for len(message) > 0 && message[0] != rawJSON { // members, each with a length
		size, n := binary.Uvarint(message[1:])
		if message[0]&7 != 2 || n <= 0 || uint64(len(message)-1-n) < size {
			return "", fmt.Errorf("the message %q is none", message)
		}
		message = message[1+n+int(size):]
	}
	if len(message) == 0 {
		return "", nil
	}
	size, n := binary.Uvarint(message[1:])
	if n <= 0 || uint64(len(message)-1-n) < size {
		return "", fmt.Errorf("the message %q is cut off", message)
	}
	return string(message[1+n : 1+n+int(size)]), nil
}

// End returns the status of the call, after Read has returned io.EOF.
func (c *Call) End() (code, text string) {
	of := c.resp.Trailer
	if c.resp.Header.Get("Grpc-Status") != "" {
		of = c.resp.Header
	}
	text, err := url.PathUnescape(of.Get("Grpc-Message"))
	if err != nil {
		text = of.Get("Grpc-Message")
	}
	return of.Get("Grpc-Status"), text
}

// Close ends the call.
func (c *Call) Close() {
	_ = c.out.Close()
	if c.resp != nil {
		_ = c.resp.Body.Close()
	}
	c.transport.CloseIdleConnections()
}
