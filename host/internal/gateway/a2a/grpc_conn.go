package a2a

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"skep/host/internal/gateway"
)

// grpcConn sends the requests of a gRPC client through an http.Client, since a partner's
// client checks addresses, bounds sizes and adds the credential. It has what the protocol
// uses: one request, one or many answers, over TLS
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
type grpcConn struct {
	client *http.Client
	base   string // https://AUTHORITY
}

// withGRPC lets a client of the library use gRPC.
func withGRPC(client *http.Client) a2aclient.FactoryOption {
	return a2aclient.WithTransport(a2a.TransportProtocolGRPC, a2aclient.TransportFactoryFn(
		func(_ context.Context, _ *a2a.AgentCard, at *a2a.AgentInterface) (a2aclient.Transport, error) {
			authority := at.URL
			if u, err := url.Parse(at.URL); err == nil && u.Scheme == "https" && u.Host != "" {
				authority = u.Host
			}
			if authority == "" || strings.ContainsAny(authority, "/?#@") {
				return nil, gateway.Refuse("the gRPC interface of the card has the address %q, which is no HOST:PORT", at.URL)
			}
			conn := grpcConn{client, "https://" + authority}
			return a2agrpc.NewGRPCTransportFromClient(a2apb.NewA2AServiceClient(conn)), nil
		}))
}

// Invoke implements [grpc.ClientConnInterface].
func (c grpcConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	s := &grpcStream{ctx: ctx, conn: c, method: method}
	defer s.close()
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

// NewStream implements [grpc.ClientConnInterface].
func (c grpcConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &grpcStream{ctx: ctx, conn: c, method: method}, nil
}

// grpcStream is one call. It is used by one goroutine.
type grpcStream struct {
	ctx    context.Context
	conn   grpcConn
	method string
	resp   *http.Response
}

// Header implements [grpc.ClientStream].
func (s *grpcStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }

// Trailer implements [grpc.ClientStream].
func (s *grpcStream) Trailer() metadata.MD { return metadata.MD{} }

// CloseSend implements [grpc.ClientStream].
func (s *grpcStream) CloseSend() error { return nil }

// Context implements [grpc.ClientStream].
func (s *grpcStream) Context() context.Context { return s.ctx }

// SendMsg implements [grpc.ClientStream]. It sends the request, the only message.
func (s *grpcStream) SendMsg(m any) error {
	raw, err := proto.Marshal(m.(proto.Message))
	if err != nil {
		return err
	}
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(raw))), raw...)
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.conn.base+s.method, bytes.NewReader(frame))
	if err != nil {
		return err
	}
	sent, _ := metadata.FromOutgoingContext(s.ctx)
	for name, values := range sent {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("Te", "trailers")
	s.resp, err = s.conn.client.Do(req)
	if err == nil && s.resp.StatusCode != http.StatusOK {
		s.close()
		return &gateway.StatusError{Code: s.resp.StatusCode}
	}
	return err
}

// RecvMsg implements [grpc.ClientStream]. A nil message takes the end only.
func (s *grpcStream) RecvMsg(m any) error {
	var head [5]byte
	_, err := io.ReadFull(s.resp.Body, head[:])
	switch {
	case errors.Is(err, io.EOF):
		s.close()
		return s.end()
	case err != nil:
		s.close()
		return err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || size > maxAnswer || m == nil {
		s.close()
		return gateway.Refuse("the partner sent a frame of %d bytes that is compressed, too long or too many", size)
	}
	raw := make([]byte, size)
	if _, err := io.ReadFull(s.resp.Body, raw); err != nil {
		s.close()
		return err
	}
	return proto.Unmarshal(raw, m.(proto.Message))
}

// end returns the status of the call, io.EOF for none.
func (s *grpcStream) end() error {
	trailer := s.resp.Trailer
	if s.resp.Header.Get("Grpc-Status") != "" { // an answer without a body
		trailer = s.resp.Header
	}
	code, err := strconv.ParseUint(trailer.Get("Grpc-Status"), 10, 8)
	if err != nil {
		return errors.New("the call has ended without a status")
	}
	if code == uint64(codes.OK) {
		return io.EOF
	}
	details := &statuspb.Status{}
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(trailer.Get("Grpc-Status-Details-Bin"), "="))
	if err == nil && len(raw) > 0 && proto.Unmarshal(raw, details) == nil && details.Code == int32(code) {
		return status.FromProto(details).Err()
	}
	text, err := url.PathUnescape(trailer.Get("Grpc-Message"))
	if err != nil {
		text = trailer.Get("Grpc-Message")
	}
	return status.Error(codes.Code(code), text)
}

func (s *grpcStream) close() {
	if s.resp != nil {
		_ = s.resp.Body.Close()
	}
}
