package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"skep/host/internal/swarm"
)

// encodedMutation is a [swarm.Mutation] as the writer takes it: encoded and checked on its
// caller's goroutine, so that the writer only moves bytes.
type encodedMutation struct {
	closer         closer
	key            swarm.TaskKey
	state          swarm.State
	created        int64
	definition     []byte // nil for none
	entrypoint     string
	microUSD       int64
	body           []byte
	consume        []int64
	stash, unstash bool
	rows           []row
	events         []entry
	history        []agentEntry
	states         []agentState
	answers        []swarm.SubmissionAnswer
	record         *recordWrite // nil for none
	kv             []kvChange
	blobs          []blob
	outbox         []outboxMessage
	delivered      []int64
	usage          []swarm.UsageCount
	size           int

	// posts are recorded with the step, if there are any.
	posts   []encodedSubmission
	updated int64
	// earlier is set instead of anything being written when the key of a post is
	// taken.
	earlier *swarm.Submission
	// admission has bounds of the tenant, nil for none. Nothing is written once it is refused.
	admission *swarm.Admission
	refused   bool
}

type encodedSubmission struct {
	post         *swarm.Submission
	digest, note []byte // nil for none
}

type entry struct {
	seq  int64
	body []byte
}

type row struct {
	entry
	stash bool
}

type agentEntry struct {
	agent string
	entry
}

type agentState struct {
	agent string
	body  []byte // nil clears
}

// Accept implements [swarm.TaskLog].
func (s *Store) Accept(ctx context.Context, st swarm.Mutation, post swarm.Submission) (swarm.Submission, error) {
	key := st.Task.Key
	posts := append([]swarm.Submission{post}, st.Submissions...)
	for _, p := range posts {
		if p.Instance != key.InstanceKey || p.Task != key.Task {
			return swarm.Submission{}, fmt.Errorf("accept: the submission is for task %q of %q, its step for task %q of %q",
				p.Task, p.Instance.Instance, key.Task, key.Instance)
		}
	}
	earlier, err := s.accept(ctx, st, posts)
	if err != nil {
		return swarm.Submission{}, fmt.Errorf("accept for task %q: %w", key.Task, err)
	}
	if earlier != nil {
		return *earlier, swarm.ErrDuplicate
	}
	return post, nil
}

// accept returns the earlier submission, if there is one.
func (s *Store) accept(ctx context.Context, st swarm.Mutation, posts []swarm.Submission) (*swarm.Submission, error) {
	c, leave, err := s.beginMutation(st)
	if err != nil {
		return nil, err
	}
	defer leave()
	e, err := s.encodeMutation(ctx, c, st)
	if err == nil {
		err = e.encodeSubmissions(posts)
	}
	if err == nil {
		st.MarkEncoded()
		e.admission = st.Admission
		err = s.writer.submit(ctx, e)
	}
	if err == nil && e.refused {
		err = swarm.ErrQuota
	}
	if err != nil || e.earlier == nil {
		return nil, err
	}
	return e.earlier, s.openSubmission(e.earlier)
}

// Commit implements [swarm.TaskLog].
func (s *Store) Commit(ctx context.Context, st swarm.Mutation) error {
	if err := s.commit(ctx, st); err != nil {
		return fmt.Errorf("commit to task %q: %w", st.Task.Key.Task, err)
	}
	return nil
}

func (s *Store) commit(ctx context.Context, st swarm.Mutation) error {
	c, leave, err := s.beginMutation(st)
	if err != nil {
		return err
	}
	defer leave()
	e, err := s.encodeMutation(ctx, c, st)
	if err != nil {
		return err
	}
	st.MarkEncoded()
	return s.writer.submit(ctx, e)
}

// beginMutation is [Store.beginWrite] for a mutation. A first key is waited for without the
// caller's processor.
func (s *Store) beginMutation(st swarm.Mutation) (c closer, leave func(), err error) {
	if ring := s.codec.ring; ring != nil && !ring.HasKey(st.Task.Key.Tenant) {
		st.MarkEncoded()
	}
	return s.beginWrite(st.Task.Key)
}

func (s *Store) encodeMutation(ctx context.Context, c closer, st swarm.Mutation) (*encodedMutation, error) {
	var e *encodedMutation
	var err error
	onOwnStack(func() { e, err = c.encodeMutation(st) })
	if err == nil {
		err = s.encodeBlobs(ctx, e, st)
	}
	return e, err
}

func (c closer) encodeMutation(st swarm.Mutation) (*encodedMutation, error) {
	if st.Stash && st.Unstash {
		return nil, errors.New("a step cannot both stash and unstash")
	}
	e := &encodedMutation{
		closer:  c,
		key:     st.Task.Key,
		state:   st.Task.State,
		created: stamp(st.Task.Created),
		updated: stamp(st.Task.Updated),
		consume: st.Consume,
		stash:   st.Stash,
		unstash: st.Unstash,
		answers: st.Answers,

		entrypoint: st.Task.Entrypoint,
		microUSD:   st.Task.Usage.MicroUSD,
	}
	if c.hasSharedLevel() { // older hosts do not erase it
		e.usage = st.Usage
	}
	if st.Task.Definition != "" {
		e.definition = []byte(st.Task.Definition)
	}
	var err error
	if e.body, err = e.seal(inTasks, "", 0, st.Task); err != nil {
		return nil, err
	}
	return e, errors.Join(e.encodeQueue(st), e.encodeEvents(st), e.encodeAgents(st), e.encodeRecord(st), e.encodeKV(st), e.encodeOutbox(st))
}

// seal makes the body of v at a spot of the step's task.
func (e *encodedMutation) seal(table, name string, seq int64, v any) ([]byte, error) {
	body, err := encode(v)
	if err != nil {
		return nil, err
	}
	if table != inQueue { // its rows are soon gone
		body = e.closer.shorten(body)
	}
	body = e.closer.close(body, spot{table, name, seq})
	e.size += len(body)
	return body, nil
}

func (e *encodedMutation) encodeSubmissions(posts []swarm.Submission) (err error) {
	c := e.closer
	c.place = placeOf(swarm.TaskKey{InstanceKey: e.key.InstanceKey})
	for _, post := range posts {
		one := encodedSubmission{post: &post}
		if one.digest, err = c.submissionBody(post.Digest, submissionSpot(post.Door, post.Key)); err != nil {
			return err
		}
		if one.note, err = c.submissionBody(post.Note, noteSpot(post.Door, post.Key)); err != nil {
			return err
		}
		e.posts, e.size = append(e.posts, one), e.size+len(one.note)
	}
	return nil
}

// submissionBody returns nil for nil.
func (c closer) submissionBody(raw []byte, at spot) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	body, err := wrap(raw)
	if err != nil {
		return nil, err
	}
	return c.close(body, at), nil
}

func (e *encodedMutation) encodeRecord(st swarm.Mutation) (err error) {
	if st.Record == nil {
		return nil
	}
	e.record, err = e.closer.record(*st.Record)
	if err == nil {
		e.size += e.record.size()
	}
	return err
}

func (e *encodedMutation) encodeKV(st swarm.Mutation) error {
	for _, w := range st.KV {
		ch, err := e.closer.kvChange(e.key, w)
		if err != nil {
			return err
		}
		e.kv = append(e.kv, ch)
		e.size += len(ch.value)
	}
	return nil
}

// ended is when the step ends its task.
func (e *encodedMutation) ended() sql.NullInt64 {
	return sql.NullInt64{Int64: e.updated, Valid: e.state.Ended()}
}

// turnEnd is when the turn of the step ended.
func (e *encodedMutation) turnEnd() sql.NullInt64 {
	if e.record == nil {
		return sql.NullInt64{}
	}
	return e.record.at
}

func (e *encodedMutation) encodeQueue(st swarm.Mutation) error {
	for _, n := range st.Consume {
		if err := checkSeq("row", n); err != nil {
			return err
		}
	}
	e.rows = make([]row, 0, len(st.Insert))
	for _, r := range st.Insert {
		en, err := e.entry("row", inQueue, "", r.N, r)
		if err != nil {
			return err
		}
		e.rows = append(e.rows, row{en, r.Stash})
	}
	return nil
}

func (e *encodedMutation) encodeEvents(st swarm.Mutation) error {
	e.events = make([]entry, 0, len(st.Events))
	for _, ev := range st.Events {
		en, err := e.entry("event", inEvents, "", ev.Seq, ev)
		if err != nil {
			return err
		}
		e.events = append(e.events, en)
	}
	return nil
}

func (e *encodedMutation) encodeAgents(st swarm.Mutation) error {
	e.history = make([]agentEntry, 0, len(st.History))
	for _, h := range st.History {
		en, err := e.entry("history entry", inHistory, h.Agent, h.Entry.Seq, h.Entry)
		if err != nil {
			return err
		}
		e.history = append(e.history, agentEntry{h.Agent, en})
	}
	e.states = make([]agentState, 0, len(st.States))
	for _, as := range st.States {
		if as.State == nil {
			e.states = append(e.states, agentState{agent: as.Agent})
			continue
		}
		body, err := wrap(as.State)
		if err != nil {
			return err
		}
		body = e.closer.close(body, spot{inStates, as.Agent, 0})
		e.size += len(body)
		e.states = append(e.states, agentState{as.Agent, body})
	}
	return nil
}

func (e *encodedMutation) entry(what, table, name string, seq int64, v any) (entry, error) {
	if err := checkSeq(what, seq); err != nil {
		return entry{}, err
	}
	body, err := e.seal(table, name, seq, v)
	return entry{seq, body}, err
}

func (e *encodedMutation) bytes() int { return e.size }
