package sqlite

import (
	"context"
	"database/sql"
)

// blankPages is how many free pages one group overwrites.
const blankPages = 1024

// freePageStmts overwrite the free pages of the file: hosts that did not overwrite
// what they deleted have left names there. The engine overwrites only what it puts into a
// page, so for a while they are taken for events that are all zeros. Those have
// negative numbers, where no query looks; what a crash leaves of them is removed by
// the erasure when it goes on. The table has to be one whose lookups do not read
// bodies.
type freePageStmts struct {
	free, pageSize *sql.Stmt
	add, drop      *sql.Stmt
}

func (b *freePageStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&b.free:     "PRAGMA freelist_count",
		&b.pageSize: "PRAGMA page_size",
		&b.add:      "INSERT INTO events SELECT min(0, coalesce(min(id), 0)) - 1, zeroblob(?) FROM events",
		&b.drop:     "DELETE FROM events WHERE id = (SELECT min(id) FROM events WHERE id < 0)",
	}
}

// overwriteFreePages overwrites all pages that are free. What others free meanwhile may be
// overwritten too.
func (s *Store) overwriteFreePages(ctx context.Context) error {
	for done := false; !done; {
		b := &freePageFill{}
		if err := s.writer.submit(ctx, b); err != nil {
			return err
		}
		done = b.done
	}
	for done := false; !done; {
		u := &freePageRelease{}
		if err := s.writer.submit(ctx, u); err != nil {
			return err
		}
		done = u.done
	}
	return nil
}

// freePageFill takes free pages.
type freePageFill struct{ done bool }

func (*freePageFill) bytes() int { return groupBytes }

func (b *freePageFill) apply(ctx context.Context, t *tables) (steps int, err error) {
	var free, size int64
	if err := t.blank.free.QueryRowContext(ctx).Scan(&free); err != nil {
		return 0, err
	}
	if b.done = free == 0; b.done {
		return 0, nil
	}
	if err := t.blank.pageSize.QueryRowContext(ctx).Scan(&size); err != nil {
		return 0, err
	}
	_, err = t.blank.add.ExecContext(ctx, min(free, blankPages)*size)
	return 0, err
}

// freePageRelease gives pages that were taken free again.
type freePageRelease struct{ done bool }

func (*freePageRelease) bytes() int { return purgeSlice }

func (u *freePageRelease) apply(ctx context.Context, t *tables) (steps int, err error) {
	r, err := t.blank.drop.ExecContext(ctx)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	u.done = n == 0
	return 0, err
}
