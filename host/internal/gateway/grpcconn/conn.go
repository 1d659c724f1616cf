package grpcconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"skep/host/internal/gateway"
)

// Conn sends the calls of a gRPC client through an http.Client, since a partner's client
// checks addresses, bounds sizes and adds the credential
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). Messages are not
// compressed, and of the options of calls [grpc.Trailer] alone does something. A message may be its
// bytes, a [Bytes]. It is safe for concurrent use.
//
// A response with another status than 200 is a [gateway.StatusError], a message that is too
// long a [gateway.Refusal], a failed request the error of the client, and the end of a call an
// error of package status.
type Conn struct {
	Client *http.Client
	Base   string // https://AUTHORITY
	// MaxMessage bounds what is received at once, in bytes.
	MaxMessage int
}

// Bytes is a message that is sent and received as its bytes.
type Bytes interface {
	WireBytes() []byte
	SetWireBytes([]byte)
}

// Invoke implements [grpc.ClientConnInterface].
func (c Conn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	s := &call{ctx: ctx, conn: c, method: method}
	defer s.close()
	for _, o := range options {
		if of, is := o.(grpc.TrailerCallOption); is {
			defer func() { *of.TrailerAddr = s.Trailer() }()
		}
	}
	if err := s.SendMsg(args); err != nil {
		return err
	}
	if err := s.RecvMsg(reply); err != nil {
		if errors.Is(err, io.EOF) {
			return status.Error(codes.Internal, "the partner sent no answer")
		}
		return err
	}
	if err := s.RecvMsg(nil); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// NewStream implements [grpc.ClientConnInterface]. The end of ctx ends the call. A call that
// sends several messages has begun when it returns, but its connection need not be open.
func (c Conn) NewStream(ctx context.Context, d *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	s := &call{ctx: ctx, conn: c, method: method}
	if !d.ClientStreams {
		return s, nil
	}
	messages, out := io.Pipe()
	req, err := s.request(messages)
	if err != nil {
		return nil, err
	}
	req.ContentLength = -1
	s.out, s.answered = out, make(chan struct{})
	// Package net/http does not see the end of ctx while it waits for more of a request.
	context.AfterFunc(ctx, func() { _ = messages.CloseWithError(context.Cause(ctx)) }) // it returns nil
	go func() {
		defer close(s.answered)
		s.resp, s.err = s.do(req)
		if s.err != nil {
			_ = messages.CloseWithError(s.err)
		}
	}()
	return s, nil
}

// call is one call. One goroutine may send while another receives.
type call struct {
	ctx    context.Context
	conn   Conn
	method string
	// out takes the messages of a call that sends several, and answered is closed as it has a
	// response. Both are nil for others.
	out      *io.PipeWriter
	answered chan struct{}
	resp     *http.Response
	err      error // of the request
	// ended is what the end of the response has in its header or trailer.
	ended http.Header
}

// Header implements [grpc.ClientStream]. It is empty.
func (s *call) Header() (metadata.MD, error) { return metadata.MD{}, nil }

// Trailer implements [grpc.ClientStream]. It has what comes with the end of the call, or the
// header of a response that is no call, after RecvMsg has returned that.
func (s *call) Trailer() metadata.MD {
	md := metadata.MD{}
	for name, values := range s.ended {
		md[strings.ToLower(name)] = values
	}
	return md
}

// CloseSend implements [grpc.ClientStream].
func (s *call) CloseSend() error {
	if s.out == nil {
		return nil
	}
	return s.out.Close()
}

// Context implements [grpc.ClientStream].
func (s *call) Context() context.Context { return s.ctx }

// SendMsg implements [grpc.ClientStream]. A call that sends one message is sent by it.
func (s *call) SendMsg(m any) error {
	raw, err := bytesOf(m)
	if err != nil {
		return err
	}
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(raw))), raw...)
	if s.out != nil {
		if _, err := s.out.Write(frame); err != nil {
			return io.EOF // RecvMsg has the reason
		}
		return nil
	}
	req, err := s.request(bytes.NewReader(frame))
	if err == nil {
		s.resp, err = s.do(req)
	}
	return err
}

// request is the request of the call.
func (s *call) request(body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.conn.Base+s.method, body)
	if err != nil {
		return nil, err
	}
	sent, _ := metadata.FromOutgoingContext(s.ctx)
	for name, values := range sent {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	return req, nil
}

func (s *call) do(req *http.Request) (*http.Response, error) {
	resp, err := s.conn.Client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		s.ended = resp.Header
		_ = resp.Body.Close()
		return nil, gateway.StatusOf(resp)
	}
	return resp, err
}

// RecvMsg implements [grpc.ClientStream]. A nil message takes the end only.
func (s *call) RecvMsg(m any) error {
	if s.answered != nil {
		<-s.answered // Do returns with the call's context
	}
	if s.err != nil {
		return s.err
	}
	raw, err := s.receive(m == nil)
	if err != nil {
		s.close()
		return err
	}
	if own, is := m.(Bytes); is {
		own.SetWireBytes(raw)
		return nil
	}
	return proto.Unmarshal(raw, m.(proto.Message))
}

func bytesOf(m any) ([]byte, error) {
	if own, is := m.(Bytes); is {
		return own.WireBytes(), nil
	}
	return proto.Marshal(m.(proto.Message))
}

// receive reads a message.
func (s *call) receive(endOnly bool) ([]byte, error) {
	var head [5]byte
	_, err := io.ReadFull(s.resp.Body, head[:])
	switch {
	case errors.Is(err, io.EOF):
		return nil, s.end()
	case err != nil:
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || uint64(size) > uint64(s.conn.MaxMessage) || endOnly {
		return nil, gateway.Refuse("the partner sent a message of %d bytes that is compressed, too long or too many", size)
	}
	raw := make([]byte, size)
	if _, err = io.ReadFull(s.resp.Body, raw); errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the head has promised more
	}
	return raw, err
}

func (s *call) close() {
	if s.out != nil {
		_ = s.out.Close()
	}
	if s.resp != nil {
		_ = s.resp.Body.Close()
	}
}
