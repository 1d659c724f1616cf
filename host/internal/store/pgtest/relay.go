package pgtest

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Relay returns a DSN that leads to the server over TCP, with further parameters as [Server.DSN] has them.
// change changes the bytes that the server sends; nil changes nothing.
func (s *Server) Relay(t testing.TB, change func([]byte) []byte, params ...string) (dsn string) {
	t.Helper()
	return s.listen(t, params, func(client net.Conn) error {
		server, err := s.dial()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			sent := buffer[:n]
			if change != nil {
				sent = change(sent)
			}
			if _, err := client.Write(sent); err != nil {
				return err
			}
			if err != nil {
				return err
			}
		}
	})
}

// Pooler is [Server.Relay] through a pooler: transactions of a client go to two sessions in turn.
func (s *Server) Pooler(t testing.TB, params ...string) (dsn string) {
	t.Helper()
	return s.listen(t, params, func(client net.Conn) error {
		front := pgproto3.NewBackend(client, client)
		begin, err := front.ReceiveStartupMessage()
		if err != nil {
			return err
		}
		var sessions [2]*pgproto3.Frontend
		for i := range sessions {
			server, err := s.dial()
			if err != nil {
				return err
			}
			defer server.Close()
			sessions[i] = pgproto3.NewFrontend(server, server)
			sessions[i].Send(begin)
			to := front
			if i == 0 { // the client learns the process of the last session alone
				to = pgproto3.NewBackend(nil, io.Discard)
			}
			if _, err := passAnswer(sessions[i], to); err != nil {
				return err
			}
		}
		return passTransactions(front, sessions)
	})
}

// passTransactions passes the transactions of a client to two sessions in turn.
func passTransactions(front *pgproto3.Backend, sessions [2]*pgproto3.Frontend) error {
	for i := 0; ; {
		message, err := front.Receive()
		if err != nil {
			return err
		}
		sessions[i].Send(message)
		switch message.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
		case *pgproto3.Terminate:
			return nil
		default:
			continue
		}
		status, err := passAnswer(sessions[i], front)
		if err != nil {
			return err
		}
		if status == 'I' {
			i = 1 - i
		}
	}
}

// passAnswer sends what was written to a session, and passes its messages on until it is ready for the next query. It
// returns the status of its transaction
// (https://www.postgresql.org/docs/15/protocol-message-formats.html#PROTOCOL-MESSAGE-FORMATS-READYFORQUERY).
func passAnswer(session *pgproto3.Frontend, to *pgproto3.Backend) (status byte, err error) {
	if err := session.Flush(); err != nil {
		return 0, err
	}
	for {
		message, err := session.Receive()
		if err != nil {
			return 0, err
		}
		to.Send(message)
		if ready, ok := message.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, to.Flush()
		}
	}
}

// listen serves clients on a free port until the test ends, and returns a DSN that leads there.
func (s *Server) listen(t testing.TB, params []string, serve func(net.Conn) error) (dsn string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			go func() {
				_ = serve(client) // the client or the server has gone
				_ = client.Close()
			}()
		}
	}()
	q := url.Values{"sslmode": {"disable"}}
	for i := 0; i+1 < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return "postgres://skep@" + l.Addr().String() + "/postgres?" + q.Encode()
}

// dial connects to the socket of the server (https://www.postgresql.org/docs/15/runtime-config-connection.html).
func (s *Server) dial() (net.Conn, error) {
	return net.Dial("unix", filepath.Join(s.dir, ".s.PGSQL.5432"))
}
