package subprocess

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
)

// Bounds of what a process can make the host hold for it: connections to its desk,
// calls at once on each, and what comes before an answer.
const (
	maxConns  = 4
	maxCalls  = 256
	maxHeader = 64 << 10
)

// dialing bounds what comes from the process where no call sets a bound of its own.
func dialing() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(maxHeader),
		grpc.WithStreamInterceptor(unasked),
	}
}

// brokerStream is how broker and broker tell each other where they listen.
const brokerStream = "/plugin.GRPCBroker/StartStream"

// unasked opens a stream. The host dials nothing that a process offers, and its
// broker would keep each offer: so none of them reaches it.
func unasked(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil || method != brokerStream {
		return stream, err
	}
	return deaf{stream}, nil
}

// deaf is a stream that receives its end and nothing else.
type deaf struct{ grpc.ClientStream }

// RecvMsg waits for the end of the stream.
func (d deaf) RecvMsg(m any) error {
	for {
		if err := d.ClientStream.RecvMsg(m); err != nil {
			return err
		}
	}
}

// few is a listener that closes every connection beyond so many.
type few struct {
	net.Listener
	free chan struct{}
}

func newFew(l net.Listener, most int) few { return few{l, make(chan struct{}, most)} }

// Accept waits for a connection that there is room for.
func (f few) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case f.free <- struct{}{}:
			return &counted{Conn: conn, left: sync.OnceFunc(func() { <-f.free })}, nil
		default:
			_ = conn.Close() // nothing has come of it
		}
	}
}

// counted is a connection that makes room when it is closed.
type counted struct {
	net.Conn
	left func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.left()
	return c.Conn.Close()
}
