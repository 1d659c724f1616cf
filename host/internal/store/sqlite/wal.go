package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
)

// A log of trimBytes is far above what the engine's own checkpoints leave, see
// checkpointPages: it means that readers overlapped so closely that the engine
// never found a moment to start the log over.
const (
	trimBytes  = 64 << 20
	trimAgain  = trimBytes / 4
	trimWaitMS = 20 // for each trimBytes of the log
)

// wal keeps the write-ahead log bounded under load without end.
type wal struct {
	path string
	// next is the size at which readers are waited for.
	next int64
	// empty asks for a log without anything in it, after the next group.
	empty atomic.Bool
}

// trim makes readers leave the log, which each does within one short query, and
// waits for them the longer the larger the log is. If one stays nevertheless, the
// log grows by trimAgain before trim waits again; until then it tries without
// waiting after each group. Errors do not matter here: a disk that fails
// also fails the next commit.
func (l *wal) trim(ctx context.Context, c *sql.Conn) {
	if l.empty.Swap(false) {
		_, _ = c.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	info, err := os.Stat(l.path)
	if err != nil || info.Size() < trimBytes {
		l.next = trimBytes
		return
	}
	wait := int64(0)
	if info.Size() >= l.next {
		wait = trimWaitMS * info.Size() / trimBytes
		l.next = info.Size() + trimAgain
	}
	for _, pragma := range []string{
		fmt.Sprintf("busy_timeout = %d", wait),
		"wal_checkpoint(RESTART)",
		fmt.Sprintf("busy_timeout = %d", busyMS),
	} {
		_, _ = c.ExecContext(ctx, "PRAGMA "+pragma)
	}
}
