package postgres

import (
	"database/sql"
	"testing"

	"skep/host/internal/store/pgtest"
)

// TestPrepareFails: a statement that could not be prepared again in a new session is prepared by its next
// call.
func TestPrepareFails(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(connector(t, pgtest.Schema(t)))
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = conn.Raw(func(raw any) error {
		c := raw.(*Conn)
		prepared, err := c.PrepareContext(t.Context(), "SELECT $1::bigint")
		if err != nil {
			return err
		}
		s := prepared.(*stmt)
		text := s.text
		c.session++ // as when the connection was made again
		s.text = "SELECT nothing FROM nowhere"
		if err := s.prepare(t.Context()); err == nil {
			t.Error("it was prepared")
		}
		s.text = text
		if n := s.NumInput(); n != 1 {
			t.Errorf("it takes %d arguments", n)
		}
		return s.prepare(t.Context())
	})
	if err != nil {
		t.Error(err)
	}
}
