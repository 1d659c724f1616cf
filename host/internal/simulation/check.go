package simulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/abi"
	"skep/host/internal/swarm"
	"skep/spec/mail"
)

// checkTurn checks what a turn may call when it begins.
func (w *world) checkTurn(v *visit, p mail.Payload) {
	if !w.grants.check(v.in.Tools, v.turn.Clock.Now()) {
		w.violate("%s may call %q, which the file in force does not grant", v.name, extraAction)
	}
	if strings.Contains(p.Body, "intruded") {
		w.violate("%s reads what an intruder has sent", v.name)
	}
}

// checkSend checks that a send is refused for the tenant's quota only when it is used
// up. While a post is being accepted the count is not certain, and a turn that runs again
// gets the refusal that it had.
func (w *world) checkSend(v *visit, s step, fault *abi.Error) {
	tenant := v.turn.Tenant
	bound := w.quotas[tenant].Quota.Queue
	if fault == nil || fault.Reason != "quota" || bound == 0 || w.ledger.wasRefused(s.Mark) || w.host == nil || !w.host.store.isSure(tenant) {
		return
	}
	claimed, err := w.host.store.Store.RunningTasks(context.Background())
	if err != nil {
		return
	}
	waiting := 0
	for _, c := range claimed {
		if c.Tenant == tenant {
			waiting += c.Waiting
		}
	}
	if waiting+v.sent+1 <= bound {
		w.violate("%s may not send: %s; but %d wait, and it sends %d", v.name, fault.Message, waiting, v.sent+1)
	}
}

// check checks what a host promises, when nothing happens any more.
func (w *world) check() {
	ctx := context.Background()
	st := w.host.store.Store
	if n := w.host.rt.CountDamaged(); n > 0 {
		w.violate("%d healthy tasks are set aside", n)
	}
	for _, tenant := range tenants {
		keys, err := st.Instances(ctx, tenant, swarmName)
		w.must(err)
		for _, key := range keys {
			tasks, err := st.Tasks(ctx, key, time.Time{}, 1000)
			w.must(err)
			for _, rec := range tasks {
				w.checkTask(rec.Key)
			}
		}
		w.checkErased(tenant)
	}
	for _, p := range w.ledger.posts {
		w.checkPost(p)
	}
	for _, x := range w.ledger.exchanges {
		w.checkExchange(x)
	}
	w.checkCounters()
}

// checkTask checks that a task has ended, or what it waits for.
func (w *world) checkTask(key swarm.TaskKey) {
	ctx := context.Background()
	st := w.host.store.Store
	snap, err := st.Load(ctx, key)
	if err != nil {
		w.violate("task %s cannot be read: %v", short(key), err)
		return
	}
	now := time.Now()
	rec := snap.Task
	if rec.State == swarm.StateRunning {
		later := 0
		for _, row := range snap.Rows {
			switch {
			case row.Stash:
			case row.NotBefore.After(now):
				later++
			case row.NotBefore.IsZero():
				w.violate("task %s hangs: row %d for %s is not handled", short(key), row.N, row.Agent)
			default:
				w.violate("task %s has lost a timer: row %d for %s was due %s ago", short(key), row.N, row.Agent, now.Sub(row.NotBefore))
			}
		}
		if !rec.Deadline.IsZero() && rec.Deadline.Before(now) {
			w.violate("task %s has lost its deadline, %s ago", short(key), now.Sub(rec.Deadline))
		}
		remote := slices.ContainsFunc(rec.Requests, func(r swarm.OpenRequest) bool { return strings.Contains(r.To, "@") })
		waits := rec.Caller != "" && !rec.Brief // for its caller
		if later == 0 && len(snap.Outbox) == 0 && !remote && !waits {
			w.violate("task %s hangs: nothing explains why it runs", short(key))
		}
	}
	for _, msg := range snap.Outbox {
		if msg.Message.Type == mail.Request && now.Sub(msg.Since) > 3*time.Minute {
			w.violate("task %s: a request to %s is in the outbox since %s", short(key), msg.Peer, now.Sub(msg.Since))
		}
	}
	if rec.State.Ended() && len(snap.Posts) > 0 {
		w.violate("task %s has ended, and %d posts have no answer", short(key), len(snap.Posts))
	}
	w.checkEvents(key)
}

// checkEvents checks that the log has no gap, and no message twice.
func (w *world) checkEvents(key swarm.TaskKey) {
	seen := map[string]string{}
	var after int64
	for {
		page, err := w.host.store.Store.Events(context.Background(), key, after, 100)
		w.must(err)
		if len(page) == 0 {
			return
		}
		for _, e := range page {
			if e.Seq != after+1 {
				w.violate("task %s: event %d follows %d", short(key), e.Seq, after)
			}
			after = e.Seq
			w.checkMessage(key, e, seen)
		}
	}
}

func (w *world) checkMessage(key swarm.TaskKey, e swarm.Event, seen map[string]string) {
	if e.Name != "new_message" {
		return
	}
	var extra struct {
		Message   json.RawMessage `json:"full_message"`
		Recipient string          `json:"recipient"`
	}
	if json.Unmarshal(e.Extra, &extra) != nil {
		return
	}
	m, err := mail.ParseMessage(extra.Message)
	var p plan
	if err != nil || json.Unmarshal([]byte(m.Payload.Body), &p) != nil || p.Mark == "" {
		return
	}
	at := p.Mark + " " + extra.Recipient
	if other, ok := seen[at]; ok {
		w.violate("task %s: message %s is there twice, as %s and %s", short(key), at, other, m.ID)
	}
	seen[at] = m.ID
}

// checkPost checks that an accepted post is in its task, and that its caller is not left
// waiting for what has been answered.
func (w *world) checkPost(p *post) {
	ctx := context.Background()
	key := p.receipt.Task
	if p.gone {
		return
	}
	page, err := w.host.store.Store.Events(ctx, key, p.receipt.Cursor-1, 1)
	w.must(err)
	if len(page) == 0 {
		if !w.ledger.pruned {
			w.violate("post %s was accepted for task %s, and is lost", p.plan.Mark, short(key))
		}
		return
	}
	if !w.ledger.pruned && !bytes.Contains(page[0].Extra, []byte(p.plan.Mark)) {
		w.violate("post %s was accepted as event %d of task %s, which is another", p.plan.Mark, p.receipt.Cursor, short(key))
	}
	if p.Key == "" || !p.waits {
		return
	}
	sub, err := w.host.store.Store.Submission(ctx, key.InstanceKey, p.Door, p.Key)
	if err != nil && !errors.Is(err, swarm.ErrNotFound) {
		w.violate("the submission of post %s: %v", p.plan.Mark, err)
	}
	if err == nil && sub.Answer > 0 {
		w.violate("post %s has an answer, and its caller still waits", p.plan.Mark)
	}
}

// checkErased checks that nothing of an erased generation is left.
func (w *world) checkErased(tenant string) {
	if len(w.ledger.erased) == 0 {
		return
	}
	var all bytes.Buffer
	w.must(w.host.store.Store.Export(context.Background(), tenant, &all))
	for _, gen := range w.ledger.erased {
		if i := bytes.Index(all.Bytes(), []byte(gen)); i >= 0 {
			w.violate("erased data is back: %q in %.300s", gen, all.Bytes()[max(0, i-150):])
		}
	}
	if !w.sealed {
		return // SQLite leaves rows that it has moved in the gaps of pages; with their key they can be read no more
	}
	for _, e := range w.files() {
		raw, err := os.ReadFile(e)
		w.must(err)
		for _, gen := range w.ledger.erased {
			if bytes.Contains(raw, []byte(gen)) {
				w.violate("erased data is in the file %s: %q", filepath.Base(e), gen)
			}
		}
	}
}

func (w *world) files() (list []string) {
	found, err := os.ReadDir(w.host.dir)
	w.must(err)
	for _, e := range found {
		list = append(list, filepath.Join(w.host.dir, e.Name()))
	}
	return list
}

// checkCounters checks that every increment that an agent has seen is in its counter,
// and no more than were tried.
func (w *world) checkCounters() {
	for counter, marks := range w.ledger.cas {
		tenant, instance, _ := strings.Cut(counter, "/")
		if w.ledger.erasedTenants[tenant] {
			continue
		}
		key := swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant, Swarm: swarmName, Instance: instance}}
		raw, err := w.host.store.Store.KVGet(context.Background(), key, swarm.KVScope{Kind: swarm.KVInstance}, "n")
		if err != nil && !errors.Is(err, swarm.ErrNotFound) {
			w.violate("counter %s: %v", counter, err)
			continue
		}
		n, _ := strconv.Atoi(string(raw))
		if n < len(marks) || n > w.ledger.casTries {
			w.violate("counter %s is %d; agents have seen %d increments succeed, of %d tries", counter, n, len(marks), w.ledger.casTries)
		}
	}
}
