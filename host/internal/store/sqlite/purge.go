package sqlite

import (
	"context"
	"fmt"
	"time"

	"skep/host/internal/swarm"
)

// purgeSlice bounds what one group deletes, so that steps do not wait for a
// purge of many.
const purgeSlice = 512

// purge deletes a slice of the submissions that no repeat can refer to any more.
type purge struct {
	before  int64
	deleted int64
}

// Purge implements [swarm.Retention].
func (s *Store) Purge(ctx context.Context, now time.Time) (total int64, err error) {
	if total, err = s.purgeGatewayState(ctx, now); err != nil {
		return total, err
	}
	n, err := s.purgeSubmissions(ctx, now)
	if err == nil {
		err = s.purgeUsage(ctx, now, swarm.UsageRows)
	}
	return total + n, err
}

func (s *Store) purgeGatewayState(ctx context.Context, now time.Time) (total int64, err error) {
	for {
		p := &gatewayStatePurge{before: stamp(now)}
		if err := s.writer.submit(ctx, p); err != nil {
			return total, fmt.Errorf("purge the records of gateways: %w", err)
		}
		total += p.deleted
		if p.deleted < purgeSlice {
			return total, nil
		}
	}
}

func (s *Store) purgeSubmissions(ctx context.Context, now time.Time) (total int64, err error) {
	for {
		p := &purge{before: stamp(now)}
		if err := s.writer.submit(ctx, p); err != nil {
			return total, fmt.Errorf("purge submissions: %w", err)
		}
		total += p.deleted
		if p.deleted < purgeSlice {
			return total, nil
		}
	}
}

func (p *purge) bytes() int { return purgeSlice }

func (p *purge) apply(ctx context.Context, t *tables) (steps int, err error) {
	r, err := t.delPosts.ExecContext(ctx, p.before, purgeSlice)
	if err != nil {
		return 0, err
	}
	p.deleted, err = r.RowsAffected()
	return 0, err
}
