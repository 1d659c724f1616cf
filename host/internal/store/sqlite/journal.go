package sqlite

import (
	"context"
	"errors"
	"fmt"

	"skep/host/internal/swarm"
)

// journalWrite is a [swarm.JournalWrite] as the writer takes it. With a cas, yes and
// no are the two records it may become.
type journalWrite struct {
	closer  closer
	key     swarm.TaskKey
	day     int64
	yes, no *recordWrite
	cas     *casChange
	ok      bool
}

// Journal implements [swarm.TurnJournal].
func (s *Store) Journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (bool, error) {
	ok, err := s.journal(ctx, key, turn, w)
	if err != nil {
		return false, fmt.Errorf("journal turn %d of task %q: %w", turn, key.Task, err)
	}
	return ok, nil
}

func (s *Store) journal(ctx context.Context, key swarm.TaskKey, turn int64, w swarm.JournalWrite) (bool, error) {
	c, leave, err := s.beginWrite(key)
	if err != nil {
		return false, err
	}
	defer leave()
	var j *journalWrite
	onOwnStack(func() { j, err = c.encodeJournal(key, turn, w) })
	if err != nil {
		return false, err
	}
	if err := s.writer.submit(ctx, j); err != nil {
		return false, err
	}
	return j.ok, nil
}

func (c closer) encodeJournal(key swarm.TaskKey, turn int64, w swarm.JournalWrite) (*journalWrite, error) {
	j := &journalWrite{closer: c, key: key, day: w.Day}
	rec := swarm.Record{N: turn, Header: w.Header, Entries: w.Entries}
	if w.Cas == nil {
		if w.Header == nil && len(w.Entries) == 0 {
			return nil, errors.New("there is nothing to write")
		}
		var err error
		j.yes, err = c.record(rec)
		return j, err
	}
	var err error
	if j.cas, err = c.casChange(key, *w.Cas); err != nil {
		return nil, err
	}
	n := len(w.Entries)
	for out, last := range map[**recordWrite]swarm.Entry{&j.yes: w.Cas.Yes, &j.no: w.Cas.No} {
		rec.Entries = append(w.Entries[:n:n], last)
		if *out, err = c.record(rec); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (j *journalWrite) bytes() int { return j.yes.size() }

// apply implements change.
func (j *journalWrite) apply(ctx context.Context, t *tables) (steps int, err error) {
	if err := t.useKey(ctx, j.closer.key(), j.key.Tenant); err != nil {
		return 0, err
	}
	iid, err := t.instance(ctx, j.key.InstanceKey)
	if err != nil {
		return 0, err
	}
	ref, err := t.task(ctx, iid, j.key)
	if err != nil {
		return 0, err
	}
	rec := j.yes
	if j.ok = true; j.cas != nil {
		if j.ok, err = t.writeCas(ctx, j.closer.opener, j.key, spaceOf{iid, ref.tid}, j.cas); err != nil {
			return 0, err
		}
		if !j.ok {
			rec = j.no
		}
	}
	return 1, t.writeRecord(ctx, j.key.Tenant, ref, rec, j.day)
}
