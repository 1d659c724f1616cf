package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// serverSize adds up the tables of the schema with their indexes
// (https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-ADMIN-DBSIZE).
const serverSize = `SELECT CAST(COALESCE(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM pg_class c
	JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`

// Size returns the bytes that the store takes: of the database with its log, or of its tables
// on a server.
func (s *Store) Size(ctx context.Context) (bytes int64, err error) {
	if _, isServer := s.writer.database.(*serverDatabase); isServer {
		err = s.readers.queryText(serverSize).first(ctx, &bytes)
		return bytes, wrapError("read the size of", s.path, err)
	}
	for _, name := range []string{s.path, s.path + "-wal"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, wrapError("read the size of", name, err)
		}
		bytes += info.Size()
	}
	return bytes, nil
}
