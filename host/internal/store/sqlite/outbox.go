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

// outboxMessage is one of an outbox as the writer takes it.
type outboxMessage struct {
	entry
	id, peer []byte
	dead     bool
}

// outboxStmts writes outboxes.
type outboxStmts struct {
	add, drop *sql.Stmt
}

func (p *outboxStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&p.add:  "INSERT INTO outbox (id, letter, peer, dead, body) VALUES (?, ?, ?, ?, ?)",
		&p.drop: "DELETE FROM outbox WHERE id = ? RETURNING length(body)",
	}
}

func (e *encodedMutation) encodeOutbox(st swarm.Mutation) error {
	for _, n := range st.Delivered {
		if err := checkSeq("letter", n); err != nil {
			return err
		}
	}
	e.delivered = st.Delivered
	for _, msg := range st.Outbox {
		en, err := e.entry("letter", inOutbox, "", msg.N, msg)
		if err != nil {
			return err
		}
		e.outbox = append(e.outbox, outboxMessage{en, []byte(msg.ID), []byte(msg.Peer), msg.Dead != nil})
	}
	return nil
}

func (e *encodedMutation) applyOutbox(ctx context.Context, t *tables, ref *taskRef) error {
	for _, n := range e.delivered {
		if err := e.deleteOutboxMessage(ctx, t, pack(ref.tid, n)); err != nil {
			return err
		}
	}
	for _, l := range e.outbox {
		id := pack(ref.tid, l.seq)
		if err := e.deleteOutboxMessage(ctx, t, id); err != nil {
			return err
		}
		if _, err := t.posting.add.ExecContext(ctx, id, l.id, l.peer, l.dead, l.body); err != nil {
			return err
		}
		t.delta.add(e.key.Tenant, int64(len(l.body)), 0)
	}
	return nil
}

// deleteOutboxMessage deletes a letter, which need not be there.
func (e *encodedMutation) deleteOutboxMessage(ctx context.Context, t *tables, id int64) error {
	var size int64
	err := t.posting.drop.QueryRowContext(ctx, id).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	t.delta.add(e.key.Tenant, -size, 0)
	return err
}

// readOutboxMessage decodes a letter, whose message has limits when it reads itself.
func (o opener) readOutboxMessage(stored entry) (swarm.OutboxMessage, error) {
	var l struct {
		swarm.OutboxMessage
		Message json.RawMessage `json:"message"`
	}
	if err := o.read(stored.body, spot{inOutbox, "", stored.seq}, &l); err != nil {
		return swarm.OutboxMessage{}, err
	}
	var err error
	if l.OutboxMessage.Message, err = unlimited.Message(l.Message); err != nil {
		return swarm.OutboxMessage{}, fmt.Errorf("%w: %w", errBody, err)
	}
	return l.OutboxMessage, nil
}

// Outboxes implements [swarm.Outboxes].
func (s *Store) Outboxes(ctx context.Context) ([]swarm.OutboxKey, error) {
	seen := map[swarm.OutboxKey]bool{}
	list, err := readRows(ctx, s.readers.query(s.readers.outboxes), func(rows *sql.Rows) (b swarm.OutboxKey, err error) {
		var peer []byte
		b.Task, err = scanTask(rows, &peer)
		b.Peer = string(peer)
		return b, err
	})
	if err != nil {
		return nil, fmt.Errorf("list outboxes: %w", addAdvice(err))
	}
	return slices.DeleteFunc(list, func(b swarm.OutboxKey) bool {
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

// storedDeadLetter is a dead letter as it is kept; its entry's number is its id.
type storedDeadLetter struct {
	key swarm.TaskKey
	entry
}

func scanDeadLetter(rows *sql.Rows) (l storedDeadLetter, err error) {
	l.key, err = scanTask(rows, &l.seq, &l.body)
	return l, err
}

func (s *Store) deadLetter(l storedDeadLetter) (swarm.DeadLetter, error) {
	read, err := s.opener(l.key).readOutboxMessage(entry{seqOf(l.seq), l.body})
	return swarm.DeadLetter{Task: l.key, OutboxMessage: read, Place: l.seq}, wrapError("read dead letter of task", l.key.String(), err)
}

// DeadLetters implements [swarm.Outboxes].
func (s *Store) DeadLetters(ctx context.Context, tenant string, before int64, limit int) (list []swarm.DeadLetter, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	for len(list) == 0 {
		kept, err := s.storedDeadLetters(ctx, tenant, before, max(limit, 0))
		if err != nil || len(kept) == 0 {
			return nil, wrapError("list dead letters of tenant", tenant, err)
		}
		if list, err = decodeReadable(s.log, kept, s.deadLetter); err != nil {
			return nil, wrapError("list dead letters of tenant", tenant, err)
		}
		before = kept[len(kept)-1].seq
	}
	return list, nil
}

// storedDeadLetters returns a page of dead letters.
func (s *Store) storedDeadLetters(ctx context.Context, tenant string, before int64, limit int) ([]storedDeadLetter, error) {
	q := s.readers.query(s.readers.deadLetters, []byte(tenant), before, limit)
	return readRowsUntil(ctx, q, func() func(*sql.Rows) (storedDeadLetter, bool, error) {
		left, first := swarm.PageBytes, true
		return func(rows *sql.Rows) (l storedDeadLetter, more bool, err error) {
			l, err = scanDeadLetter(rows)
			left -= contentSize(l.body)
			more, first = first || left >= 0, false
			return l, more, err
		}
	})
}

// DeadLetter implements [swarm.Outboxes].
func (s *Store) DeadLetter(ctx context.Context, tenant, id string) (swarm.DeadLetter, error) {
	kept, err := readRows(ctx, s.readers.query(s.readers.deadOne, []byte(id), []byte(tenant)), scanDeadLetter)
	if err == nil && len(kept) == 0 {
		err = swarm.ErrNotFound
	}
	list, err := decodeAll(kept, err, s.deadLetter)
	if err != nil {
		return swarm.DeadLetter{}, wrapError("find dead letter", id, err)
	}
	return list[0], nil
}
