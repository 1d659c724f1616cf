package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"skep/host/internal/swarm"
)

// recordWrite is what one write adds to the record of a turn, encoded.
type recordWrite struct {
	n             int64
	header, input []byte // nil when they are there already
	// first and last number the entries of this write, 0 for none. They are in
	// chunk as long as the turn goes on, and in end when it ends.
	first, last int64
	chunk, end  []byte
	at          sql.NullInt64 // when the turn ended
	// spend is what the entries spend, by their day; 0 is the day of the write.
	spend map[int64]swarm.Spend
}

func (r *recordWrite) size() int { return len(r.header) + len(r.input) + len(r.chunk) + len(r.end) }

// ending is the content of the body that ends a record.
type ending struct {
	Entries []swarm.Entry  `json:"entries,omitempty"`
	End     *swarm.TurnEnd `json:"end"`
}

// chunkSpot is where entries of a turn lie, by the number of the last.
func chunkSpot(turn, last int64) spot {
	return spot{inJournal, strconv.FormatInt(turn, 10), last}
}

// record encodes what is added to a record.
func (c closer) record(r swarm.Record) (*recordWrite, error) {
	if err := checkRecord(r); err != nil {
		return nil, err
	}
	out := &recordWrite{n: r.N, spend: map[int64]swarm.Spend{}}
	if n := len(r.Entries); n > 0 {
		out.first, out.last = r.Entries[0].N, r.Entries[n-1].N
	}
	for _, e := range r.Entries {
		if e.Spend != (swarm.Spend{}) {
			out.spend[e.Day] = out.spend[e.Day].Add(e.Spend)
		}
	}
	var err error
	if r.Header != nil {
		if out.header, err = c.packed(r.Header, spot{inHeaders, "", r.N}); err != nil {
			return nil, err
		}
		if out.input, err = wrap(r.Header.Input); err != nil {
			return nil, err
		}
		out.input = c.close(c.packRecord(out.input), spot{inInputs, "", r.N})
	}
	switch {
	case r.End != nil:
		out.at = sql.NullInt64{Int64: stamp(r.End.At), Valid: true}
		out.end, err = c.packed(ending{r.Entries, r.End}, spot{inEnds, "", r.N})
	case out.last > 0:
		out.chunk, err = c.packed(r.Entries, chunkSpot(r.N, out.last))
	}
	return out, err
}

// packed makes a body of what repeats itself.
func (c closer) packed(v any, at spot) ([]byte, error) {
	body, err := encode(v)
	if err != nil {
		return nil, err
	}
	return c.close(c.packRecord(body), at), nil
}

func checkRecord(r swarm.Record) error {
	if err := checkSeq("turn", r.N); err != nil {
		return err
	}
	if r.Header != nil && len(r.Entries) > 0 && r.Entries[0].N != 1 {
		return fmt.Errorf("%w: the first entry of turn %d is number %d", errRange, r.N, r.Entries[0].N)
	}
	for i, e := range r.Entries {
		if err := checkSeq("entry", e.N); err != nil {
			return err
		}
		if e.N != r.Entries[0].N+int64(i) {
			return fmt.Errorf("%w: entry %d of turn %d follows %d", errRange, e.N, r.N, r.Entries[i-1].N)
		}
	}
	return nil
}

// writeRecord writes what is added to a record. What its entries have spent counts
// to their days, or the given one.
func (t *tables) writeRecord(ctx context.Context, tenant string, ref *taskRef, r *recordWrite, day int64) error {
	t.delta.add(tenant, int64(r.size()), 0)
	for on, spend := range r.spend {
		t.delta.addSpend(tenant, cmp.Or(on, day), spend)
	}
	if r.header == nil {
		return t.extendRecord(ctx, ref, r)
	}
	var jid sql.NullInt64
	if !r.at.Valid {
		var err error
		if jid, err = t.nextJID(ctx); err != nil {
			return err
		}
	}
	if _, err := t.addTurn.ExecContext(ctx, pack(ref.tid, r.n), r.at, jid, r.header, r.end, r.input); err != nil || r.at.Valid {
		return err
	}
	turn := &turnRef{jid: jid.Int64}
	ref.turns[r.n] = turn
	return t.writeChunk(ctx, turn, r)
}

// highestJID selects the highest number that a journal may have. The numbers in use do not
// show it: a journal may be empty yet, or partly deleted. An older host has reserved none.
const highestJID = `SELECT max(coalesce((SELECT max(id) >> 31 FROM journal), 0),
	coalesce((SELECT value FROM meta WHERE name = 'journals'), (SELECT max(jid) FROM turns), 0))`

// reservedJIDs is how many numbers of journals are reserved at a time.
const reservedJIDs = 256

// nextJID returns the next number of a journal. What is reserved is part of the
// transaction, and forgotten with it.
func (t *tables) nextJID(ctx context.Context) (sql.NullInt64, error) {
	t.lastJID++
	if err := checkParent(t.lastJID); err != nil {
		return sql.NullInt64{}, err
	}
	if t.lastJID > t.reservedJID && t.shared != nil {
		if err := t.reserveSharedJIDs(ctx); err != nil {
			return sql.NullInt64{}, err
		}
	}
	if t.lastJID > t.reservedJID {
		t.reservedJID = t.lastJID + reservedJIDs
		if _, err := t.reserveJIDs.ExecContext(ctx, t.reservedJID); err != nil {
			return sql.NullInt64{}, err
		}
	}
	return sql.NullInt64{Int64: t.lastJID, Valid: true}, nil
}

// reserveSharedJIDs reserves numbers that no other host has.
func (t *tables) reserveSharedJIDs(ctx context.Context) error {
	step := int64(reservedJIDs)
	if err := t.shared.reserveJIDs.QueryRowContext(ctx, step).Scan(&t.reservedJID); err != nil {
		return err
	}
	t.lastJID = t.reservedJID - step + 1
	return checkParent(t.lastJID)
}

func (t *tables) writeChunk(ctx context.Context, turn *turnRef, r *recordWrite) error {
	if r.chunk == nil {
		return nil
	}
	turn.last = r.last
	_, err := t.addJournal.ExecContext(ctx, pack(turn.jid, r.last), r.chunk)
	return err
}

// extendRecord adds to a record that is there and has no end. Entries must not
// leave a gap: a re-run would take it for the end of what is known.
func (t *tables) extendRecord(ctx context.Context, ref *taskRef, r *recordWrite) error {
	turn, err := t.openTurn(ctx, ref, r.n)
	if err != nil {
		return err
	}
	if r.last > 0 && r.first != turn.last+1 {
		return refuse(fmt.Errorf("%w: entry %d of turn %d follows %d", errRange, r.first, r.n, turn.last))
	}
	if r.end != nil {
		delete(ref.turns, r.n)
		_, err := t.endTurn.ExecContext(ctx, r.at, r.end, pack(ref.tid, r.n))
		return err
	}
	return t.writeChunk(ctx, turn, r)
}

// openTurn returns what to remember of a turn that has not ended.
func (t *tables) openTurn(ctx context.Context, ref *taskRef, n int64) (*turnRef, error) {
	if turn, ok := ref.turns[n]; ok {
		return turn, nil
	}
	var jid, at sql.NullInt64
	err := t.findTurn.QueryRowContext(ctx, pack(ref.tid, n)).Scan(&jid, &at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, refuse(fmt.Errorf("record of turn %d: %w", n, swarm.ErrNotFound))
	case err != nil:
		return nil, err
	case at.Valid:
		return nil, refuse(fmt.Errorf("turn %d has ended", n))
	}
	turn := &turnRef{jid: jid.Int64}
	if err := t.lastEntry.QueryRowContext(ctx, pack(turn.jid, 0), pack(turn.jid, maxSeq)).Scan(&turn.last); err != nil {
		return nil, err
	}
	turn.last = seqOf(turn.last)
	ref.turns[n] = turn
	return turn, nil
}

// storedTurn is a record as it is kept.
type storedTurn struct {
	n                  int64
	jid                sql.NullInt64
	header, end, input []byte
	chunks             []entry
}

// Record implements [swarm.TurnJournal].
func (s *Store) Record(ctx context.Context, key swarm.TaskKey, turn int64) (swarm.Record, error) {
	st, err := reread(ctx, s.readers.patience, func(ctx context.Context, answered func()) (storedTurn, error) {
		return s.readers.record(ctx, answered, key, turn)
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = swarm.ErrNotFound
	}
	if err != nil {
		return swarm.Record{}, fmt.Errorf("read record of turn %d of task %q: %w", turn, key.Task, addAdvice(err))
	}
	r, err := s.opener(key).readRecord(st)
	if err != nil {
		return swarm.Record{}, fmt.Errorf("read record of turn %d of task %q: %w", turn, key.Task, err)
	}
	return r, nil
}

// record reads the parts of a record in one transaction.
func (r *readers) record(ctx context.Context, answered func(), key swarm.TaskKey, turn int64) (st storedTurn, err error) {
	st.n = turn
	if checkSeq("turn", turn) != nil {
		return st, sql.ErrNoRows
	}
	tx, err := r.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	answered()
	if err != nil {
		return st, err
	}
	defer tx.Rollback() // it only reads
	err = tx.StmtContext(ctx, r.turn).QueryRowContext(ctx, append(taskArgs(key), turn)...).Scan(
		&st.jid, &st.header, &st.end, &st.input)
	if err != nil || !st.jid.Valid {
		return st, err
	}
	rows, err := tx.StmtContext(ctx, r.journal).QueryContext(ctx, pack(st.jid.Int64, 0), pack(st.jid.Int64, maxSeq))
	st.chunks, err = collect(rows, err, scanEntry)
	return st, err
}

func (o opener) readRecord(st storedTurn) (swarm.Record, error) {
	r, err := o.readTurn(st)
	if err != nil {
		return r, err
	}
	if r.Header.Input, err = o.open(st.input, spot{inInputs, "", st.n}); err != nil {
		return r, err
	}
	tail := r.Entries
	r.Entries = nil
	for _, c := range st.chunks {
		var part []swarm.Entry
		if err := o.read(c.body, chunkSpot(st.n, c.seq), &part); err != nil {
			return r, err
		}
		r.Entries = append(r.Entries, part...)
	}
	r.Entries = append(r.Entries, tail...)
	return r, nil
}

// readTurn reads a record without its input and what was journaled.
func (o opener) readTurn(st storedTurn) (swarm.Record, error) {
	r := swarm.Record{N: st.n, Header: &swarm.TurnHeader{}}
	if err := o.read(st.header, spot{inHeaders, "", st.n}, r.Header); err != nil {
		return r, err
	}
	if st.end == nil {
		return r, nil
	}
	var e ending
	err := o.read(st.end, spot{inEnds, "", st.n}, &e)
	r.Entries, r.End = e.Entries, e.End
	return r, err
}

// Records implements [swarm.TurnJournal].
func (s *Store) Records(ctx context.Context, key swarm.TaskKey, after int64, limit int) ([]swarm.Record, error) {
	q := s.readers.query(s.readers.turns, append(taskArgs(key), clampSeq(after), max(limit, 0))...)
	kept, err := readRowsUntil(ctx, q, func() func(*sql.Rows) (storedTurn, bool, error) {
		left, first := swarm.PageBytes, true
		return func(rows *sql.Rows) (st storedTurn, more bool, err error) {
			err = rows.Scan(&st.n, &st.header, &st.end)
			st.n = seqOf(st.n)
			left -= contentSize(st.header) + contentSize(st.end)
			more, first = first || left >= 0, false
			return st, more, err
		}
	})
	o := s.opener(key)
	list, err := decodeAll(kept, err, func(st storedTurn) (swarm.Record, error) {
		r, err := o.readTurn(st)
		r.Entries = nil
		return r, err
	})
	return list, wrapError("list records of task", key.Task, err)
}

// Footprint implements [swarm.Tenants].
func (s *Store) Footprint(ctx context.Context, tenant string) (f swarm.Footprint, err error) {
	err = s.readers.query(s.readers.footprint, []byte(tenant)).first(ctx, &f.Bytes, &f.Tasks, &f.Day, &f.Made, &f.Tokens, &f.MicroUSD)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return f, wrapError("read footprint of tenant", tenant, err)
}
