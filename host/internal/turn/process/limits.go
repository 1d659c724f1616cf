package process

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc"
)

// Limits of what a process can make the host hold: connections to its host service,
// concurrent calls on each, and header bytes.
const (
	maxConns  = 4
	maxCalls  = 256
	maxHeader = 64 << 10
)

// dialOptions bounds what the process sends outside of calls with a limit of their own.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(maxHeader),
		grpc.WithStreamInterceptor(dropBrokerOffers),
	}
}

// brokerStream is the method over which go-plugin brokers exchange addresses.
const brokerStream = "/plugin.GRPCBroker/StartStream"

// dropBrokerOffers drops all messages of the broker stream. The host never dials a process
// through the broker, and the broker would keep every offer in memory.
func dropBrokerOffers(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil || method != brokerStream {
		return stream, err
	}
	return endOnlyStream{stream}, nil
}

// endOnlyStream is a stream that receives only its end.
type endOnlyStream struct{ grpc.ClientStream }

// RecvMsg waits for the end of the stream.
func (d endOnlyStream) RecvMsg(m any) error {
	for {
		if err := d.ClientStream.RecvMsg(m); err != nil {
			return err
		}
	}
}

// limitedListener closes connections of strangers, and connections beyond a limit.
type limitedListener struct {
	net.Listener
	slots  chan struct{}
	admits func(net.Conn) bool
}

func newLimitedListener(l net.Listener, most int, admits func(net.Conn) bool) limitedListener {
	return limitedListener{l, make(chan struct{}, most), admits}
}

// Accept waits for an admitted connection within the limit.
func (f limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if !f.admits(conn) {
			_ = conn.Close() // nothing was read from it
			continue
		}
		select {
		case f.slots <- struct{}{}:
			return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { <-f.slots })}, nil
		default:
			_ = conn.Close() // nothing was read from it
		}
	}
}

// limitedConn frees its slot when it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close closes the connection.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
