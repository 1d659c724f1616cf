package postgres

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// stopLimit bounds each wait for a server once the host stops.
const stopLimit = 5 * time.Second

// silentError is what a connection returns that has waited for [stopLimit]. It is no timeout: pgconn keeps a
// connection that has timed out.
type silentError struct{}

var _ net.Error = silentError{}

func (silentError) Error() string   { return "the server is silent, and the host stops" }
func (silentError) Timeout() bool   { return false }
func (silentError) Temporary() bool { return false }

// stopConn is a connection to a server that is not waited for without end once the host stops: the server may
// stand still, its packets may be lost, or it may wait for a standby.
type stopConn struct {
	net.Conn
	stop    context.Context
	unwatch func() bool
}

// boundStop makes dial's connections stopConns.
func boundStop(dial pgconn.DialFunc, stop context.Context) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &stopConn{Conn: conn, stop: stop}
		// Deadlines hold for calls that wait already.
		c.unwatch = context.AfterFunc(stop, func() { _ = conn.SetDeadline(time.Now().Add(stopLimit)) })
		return c, nil
	}
}

func (c *stopConn) Read(b []byte) (n int, err error) {
	if c.stop.Err() != nil {
		_ = c.SetReadDeadline(time.Now().Add(stopLimit))
	}
	n, err = c.Conn.Read(b)
	return n, c.asSilence(err)
}

func (c *stopConn) Write(b []byte) (n int, err error) {
	if c.stop.Err() != nil {
		_ = c.SetWriteDeadline(time.Now().Add(stopLimit))
	}
	n, err = c.Conn.Write(b)
	return n, c.asSilence(err)
}

func (c *stopConn) Close() error {
	c.unwatch()
	return c.Conn.Close()
}

// asSilence returns the error of a deadline as what it is once the host stops.
func (c *stopConn) asSilence(err error) error {
	if c.stop.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return silentError{}
	}
	return err
}

// boundConnect returns a context that ends [stopLimit] after the host has begun to stop.
func boundConnect(ctx, stop context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(stop, func() {
		late := time.NewTimer(stopLimit)
		defer late.Stop()
		select {
		case <-late.C:
			cancel(silentError{})
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		unwatch()
		cancel(nil)
	}
}
