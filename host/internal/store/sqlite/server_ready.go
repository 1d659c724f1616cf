package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// awayAfter is how long a server may not answer before its host is not ready.
const awayAfter = 5 * time.Second

// readyPause is between two attempts to reach a server.
const readyPause = 200 * time.Millisecond

// Errors of [Store.Ready].
var (
	errAway  = errors.New("the PostgreSQL server does not answer")
	errStuck = errors.New("the PostgreSQL server does not acknowledge writes: it or its synchronous standby hangs")
)

// Ready returns why nothing can be read or written. It waits for a server, at most 5 s.
func (s *Store) Ready(ctx context.Context) error {
	d, isServer := s.writer.database.(*serverDatabase)
	if !isServer {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, awayAfter)
	defer cancel()
	for {
		var one int
		err := s.readers.db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
		if err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errAway, err)
		case <-time.After(readyPause):
		}
	}
	if since := d.since.Load(); since != 0 && time.Since(time.Unix(0, since)) > awayAfter {
		return errStuck
	}
	return nil
}
