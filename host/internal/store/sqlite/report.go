package sqlite

import (
	"context"
	"log/slog"
)

// reportLimit bounds the counting at open: a host with millions of tasks must
// not wait for a line in its log.
const reportLimit = 10_000

// report logs what this host takes up. Counts that end at reportLimit mean
// that many or more.
func (s *Store) report(ctx context.Context, lg *slog.Logger, unclean bool) error {
	running, err := s.count(ctx, "tasks INDEXED BY tasks_running WHERE state = 'running'")
	if err != nil {
		return err
	}
	rows, err := s.count(ctx, "queue")
	if err != nil {
		return err
	}
	lg.InfoContext(ctx, "store opened", "path", s.path, "epoch", s.writer.epoch,
		"unclean", unclean, "tasks_running", running, "rows_pending", rows)
	if s.codec.ring == nil {
		return nil
	}
	if n, file := s.codec.ring.Aside(); n > 0 {
		lg.WarnContext(ctx, "the keyring ended in a key that a crash had cut short; nothing was sealed with it", "bytes", n, "moved_to", file)
	}
	return nil
}

func (s *Store) count(ctx context.Context, from string) (n int64, err error) {
	q := "SELECT count(*) FROM (SELECT 1 FROM " + from + " LIMIT CAST(? AS BIGINT)) AS counted"
	err = s.readers.queryText(q, reportLimit).first(ctx, &n)
	return n, err
}
