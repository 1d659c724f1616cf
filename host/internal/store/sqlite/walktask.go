package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"skep/host/internal/swarm"
)

func (w *walk) task(ctx context.Context, iid, tid int64, key swarm.TaskKey) error {
	plain := func(table, swap string) func(int64, int64, []byte) item {
		return func(id, flag int64, body []byte) item {
			return item{key: key, at: spot{table, "", seqOf(id)}, body: body, swap: swap, row: []any{id}, facts: facts{stash: flag != 0}}
		}
	}
	if err := w.span(ctx, w.stmts.queue, tid, plain(inQueue, swapQueue)); err != nil {
		return err
	}
	if err := w.span(ctx, w.stmts.events, tid, plain(inEvents, swapEvents)); err != nil {
		return err
	}
	if err := w.span(ctx, w.stmts.letters, tid, plain(inOutbox, swapLetter)); err != nil {
		return err
	}
	if err := w.agents(ctx, tid, key); err != nil {
		return err
	}
	if err := w.turns(ctx, tid, key); err != nil {
		return err
	}
	if err := w.uses(ctx, tid, key); err != nil {
		return err
	}
	return w.spaces(ctx, w.stmts.taskSpaces, key, iid, tid)
}

// span visits the entries of one parent.
func (w *walk) span(ctx context.Context, stmt *sql.Stmt, parent int64, item func(id, flag int64, body []byte) item) error {
	after := pack(parent, 0)
	for {
		page, err := pageOf(ctx, stmt, func(rows *sql.Rows) (it itemAt, size int, err error) {
			var flag int64
			var body []byte
			err = rows.Scan(&it.id, &flag, &body)
			it.item = item(it.id, flag, body)
			return it, len(body), err
		}, after, pack(parent, maxSeq))
		if err != nil || len(page) == 0 {
			return err
		}
		if err := w.visit(itemsOf(page)); err != nil {
			return err
		}
		after = page[len(page)-1].id
	}
}

type itemAt struct {
	item
	id int64
}

func itemsOf(page []itemAt) []item {
	list := make([]item, len(page))
	for i, it := range page {
		list[i] = it.item
	}
	return list
}

func (w *walk) agents(ctx context.Context, tid int64, key swarm.TaskKey) error {
	var after any = int64(0)
	for {
		type found struct {
			aid          int64
			agent, state []byte
		}
		page, err := pageOf(ctx, w.stmts.agents, func(rows *sql.Rows) (f found, size int, err error) {
			err = rows.Scan(&f.aid, &f.agent, &f.state)
			return f, len(f.state), err
		}, tid, after)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, f := range page {
			agent := string(f.agent)
			if f.state != nil {
				it := item{key: key, at: spot{inStates, agent, 0}, body: f.state, swap: swapState, row: []any{f.aid}, facts: facts{agent: agent}}
				if err := w.visit([]item{it}); err != nil {
					return err
				}
			}
			err := w.span(ctx, w.stmts.history, f.aid, func(id, _ int64, body []byte) item {
				return item{key: key, at: spot{inHistory, agent, seqOf(id)}, body: body, swap: swapHistory, row: []any{id}, facts: facts{agent: agent}}
			})
			if err != nil {
				return err
			}
		}
		after = page[len(page)-1].agent
	}
}

func (w *walk) turns(ctx context.Context, tid int64, key swarm.TaskKey) error {
	type found struct {
		id                 int64
		jid                sql.NullInt64
		header, input, end []byte
	}
	for after := pack(tid, 0); ; {
		page, err := pageOf(ctx, w.stmts.turns, func(rows *sql.Rows) (f found, size int, err error) {
			err = rows.Scan(&f.id, &f.jid, &f.header, &f.input, &f.end)
			return f, len(f.header) + len(f.input) + len(f.end), err
		}, after, pack(tid, maxSeq))
		if err != nil || len(page) == 0 {
			return err
		}
		for _, f := range page {
			n, row := seqOf(f.id), []any{f.id}
			parts := []item{
				{key: key, at: spot{inHeaders, "", n}, body: f.header, swap: swapHeader, row: row},
				{key: key, at: spot{inInputs, "", n}, body: f.input, swap: swapInput, row: row},
			}
			if f.end != nil {
				parts = append(parts, item{key: key, at: spot{inEnds, "", n}, body: f.end, swap: swapEnd, row: row})
			}
			if err := errors.Join(w.visit(parts), w.journal(ctx, f.jid, n, key)); err != nil {
				return err
			}
		}
		after = page[len(page)-1].id
	}
}

func (w *walk) journal(ctx context.Context, jid sql.NullInt64, turn int64, key swarm.TaskKey) error {
	if !jid.Valid {
		return nil
	}
	return w.span(ctx, w.stmts.journal, jid.Int64, func(id, _ int64, body []byte) item {
		return item{key: key, at: chunkSpot(turn, seqOf(id)), body: body, swap: swapJournal, row: []any{id}, facts: facts{turn: turn}}
	})
}

func (w *walk) spaces(ctx context.Context, stmt *sql.Stmt, key swarm.TaskKey, args ...any) error {
	var after any = int64(0)
	for {
		type found struct {
			sid   int64
			kind  string
			agent []byte
		}
		page, err := pageOf(ctx, stmt, func(rows *sql.Rows) (f found, size int, err error) {
			err = rows.Scan(&f.sid, &f.kind, &f.agent)
			return f, 0, err
		}, append(args[:len(args):len(args)], after)...)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, f := range page {
			scope := swarm.KVScope{Kind: swarm.KVKind(f.kind), Agent: string(f.agent)}
			if err := w.values(ctx, f.sid, key, scope); err != nil {
				return err
			}
		}
		after = page[len(page)-1].agent
	}
}

func (w *walk) values(ctx context.Context, sid int64, key swarm.TaskKey, scope swarm.KVScope) error {
	_, table := kvPlace(key, scope)
	var after any = int64(0)
	for {
		page, err := pageOf(ctx, w.stmts.values, func(rows *sql.Rows) (it item, size int, err error) {
			var name []byte
			err = rows.Scan(&name, &it.body)
			it.key, it.at, it.swap, it.row = key, spot{table, string(name), 0}, swapValue, []any{sid, name}
			it.facts = facts{agent: scope.Agent, scope: string(scope.Kind), name: string(name)}
			return it, len(it.body), err
		}, sid, after)
		if err != nil || len(page) == 0 {
			return err
		}
		if err := w.visit(page); err != nil {
			return err
		}
		after = page[len(page)-1].row[1]
	}
}
