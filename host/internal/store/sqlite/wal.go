package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// A log of trimBytes is far above what the engine's own checkpoints leave, see
// checkpointPages: it means that readers overlapped so closely that the engine
// never found a moment to start the log over.
const (
	trimBytes  = 64 << 20
	trimEvery  = 64 // groups
	trimWaitMS = 20 // for each trimBytes of the log
)

// wal keeps the write-ahead log bounded under load without end.
type wal struct {
	path   string
	groups int
}

// trim makes readers leave the log, which each does within one short query, and
// waits for them the longer the larger the log is. What it does not reach now it
// reaches at a later call, so its errors are nobody's concern: a disk that
// fails also fails the next commit.
func (l *wal) trim(ctx context.Context, c *sql.Conn) {
	if l.groups++; l.groups%trimEvery != 0 {
		return
	}
	info, err := os.Stat(l.path)
	if err != nil || info.Size() < trimBytes {
		return
	}
	for _, pragma := range []string{
		fmt.Sprintf("busy_timeout = %d", trimWaitMS*info.Size()/trimBytes),
		"wal_checkpoint(RESTART)",
		fmt.Sprintf("busy_timeout = %d", busyMS),
	} {
		_, _ = c.ExecContext(ctx, "PRAGMA "+pragma)
	}
}
