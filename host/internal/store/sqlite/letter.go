package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"skep/host/internal/swarm"
)

// letter is one of an outbox as the writer takes it.
type letter struct {
	entry
	id, peer []byte
	dead     bool
}

// posting writes outboxes.
type posting struct {
	add, drop *sql.Stmt
}

func (p *posting) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&p.add:  "INSERT INTO outbox (id, letter, peer, dead, body) VALUES (?, ?, ?, ?, ?)",
		&p.drop: "DELETE FROM outbox WHERE id = ? RETURNING length(body)",
	}
}

func (e *step) encodeLetters(st swarm.Step) error {
	for _, n := range st.Sent {
		if err := checkSeq("letter", n); err != nil {
			return err
		}
	}
	e.sent = st.Sent
	for _, l := range st.Letters {
		en, err := e.entry("letter", inOutbox, "", l.N, l)
		if err != nil {
			return err
		}
		e.letters = append(e.letters, letter{en, []byte(l.ID), []byte(l.Peer), l.Dead != nil})
	}
	return nil
}

func (e *step) applyLetters(ctx context.Context, t *tables, ref *taskRef) error {
	for _, n := range e.sent {
		if err := e.dropLetter(ctx, t, pack(ref.tid, n)); err != nil {
			return err
		}
	}
	for _, l := range e.letters {
		id := pack(ref.tid, l.seq)
		if err := e.dropLetter(ctx, t, id); err != nil {
			return err
		}
		if _, err := t.posting.add.ExecContext(ctx, id, l.id, l.peer, l.dead, l.body); err != nil {
			return err
		}
		t.tally.add(e.key.Tenant, int64(len(l.body)), 0)
	}
	return nil
}

// dropLetter deletes a letter, which need not be there.
func (e *step) dropLetter(ctx context.Context, t *tables, id int64) error {
	var size int64
	err := t.posting.drop.QueryRowContext(ctx, id).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	t.tally.add(e.key.Tenant, -size, 0)
	return err
}

// readLetter decodes a letter, whose message has limits when it reads itself.
func (o opener) readLetter(stored entry) (swarm.Letter, error) {
	var l struct {
		swarm.Letter
		Message json.RawMessage `json:"message"`
	}
	if err := o.read(stored.body, spot{inOutbox, "", stored.seq}, &l); err != nil {
		return swarm.Letter{}, err
	}
	var err error
	if l.Letter.Message, err = unlimited.Message(l.Message); err != nil {
		return swarm.Letter{}, fmt.Errorf("%w: %w", errBody, err)
	}
	return l.Letter, nil
}

// Outboxes implements [swarm.Store].
func (s *Store) Outboxes(ctx context.Context) ([]swarm.Outbox, error) {
	rows, err := s.readers.outboxes.QueryContext(ctx)
	seen := map[swarm.Outbox]bool{}
	list, err := collect(rows, err, func(rows *sql.Rows) (b swarm.Outbox, err error) {
		var peer []byte
		b.Task, err = scanTask(rows, &peer)
		b.Peer = string(peer)
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("list outboxes: %w", explain(err))
	}
	return slices.DeleteFunc(list, func(b swarm.Outbox) bool {
		again := seen[b]
		seen[b] = true
		return again
	}), nil
}

// scanTask reads the names of a task and what follows them.
func scanTask(rows *sql.Rows, more ...any) (swarm.TaskKey, error) {
	var tenant, name, instance, task []byte
	err := rows.Scan(append([]any{&tenant, &name, &instance, &task}, more...)...)
	key := swarm.InstanceKey{Tenant: string(tenant), Swarm: string(name), Instance: string(instance)}
	return swarm.TaskKey{InstanceKey: key, Task: string(task)}, err
}

// storedLetter is a dead letter as it is kept; its entry's number is its id.
type storedLetter struct {
	key swarm.TaskKey
	entry
}

func scanLetter(rows *sql.Rows) (l storedLetter, err error) {
	l.key, err = scanTask(rows, &l.seq, &l.body)
	return l, err
}

func (s *Store) deadLetter(l storedLetter) (swarm.DeadLetter, error) {
	read, err := s.opener(l.key).readLetter(entry{seqOf(l.seq), l.body})
	return swarm.DeadLetter{Task: l.key, Letter: read, Place: l.seq}, err
}

// DeadLetters implements [swarm.Store].
func (s *Store) DeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]swarm.DeadLetter, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	left, first := swarm.PageBytes, true
	rows, err := s.readers.deadLetters.QueryContext(ctx, []byte(tenant), before, max(limit, 0))
	kept, err := collectUntil(rows, err, func(rows *sql.Rows) (l storedLetter, more bool, err error) {
		l, err = scanLetter(rows)
		left -= contentSize(l.body)
		more, first = first || left >= 0, false
		return l, more, err
	})
	list, err := decodeAll(kept, err, s.deadLetter)
	return list, failed("list dead letters of tenant", tenant, err)
}

// DeadLetter implements [swarm.Store].
func (s *Store) DeadLetter(ctx context.Context, tenant, id string) (swarm.DeadLetter, error) {
	rows, err := s.readers.deadOne.QueryContext(ctx, []byte(id), []byte(tenant))
	kept, err := collect(rows, err, scanLetter)
	if err == nil && len(kept) == 0 {
		err = swarm.ErrNotFound
	}
	list, err := decodeAll(kept, err, s.deadLetter)
	if err != nil {
		return swarm.DeadLetter{}, failed("find dead letter", id, err)
	}
	return list[0], nil
}
