package swarm

import (
	"context"
	"errors"
)

// Answered returns the cursor of the event that answers a post, 0 while there
// is none. Whoever has read an event of the log, and then asks, learns for
// certain whether it was the one: both are written by the same commit.
func (r *Runtime) Answered(ctx context.Context, receipt *Receipt) (int64, error) {
	sub, err := r.store.Submission(ctx, receipt.Task.InstanceKey, receipt.door, receipt.key)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	return sub.Answer, err
}
