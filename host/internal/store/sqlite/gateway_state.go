package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"skep/host/internal/gateway/state"
	"skep/host/internal/swarm"
)

// realmTable has the realms of which a gateway keeps records, with their number.
var realmTable = &table{
	name: "gateway_realms", where: "tenant = ?", key: []string{"rid"}, order: []string{"gateway", "realm"}, number: "rid",
	children: []*table{gatewayStateTable},
	describe: func(n *node, r tableRow) { n.facts.gateway, n.facts.realm = r.text("gateway"), r.text("realm") },
}

var gatewayStateTable = &table{
	name: inGatewayState, where: "rid = ?", key: []string{"rid", "kind", "name"}, order: []string{"kind", "name"},
	bodies: []column{{name: "value", place: inGatewayState, kind: "gateway_state"}}, size: "length(name) + length(value)",
	describe: func(n *node, r tableRow) {
		n.facts.scope, n.facts.name = r.text("kind"), r.text("name")
		n.at = gatewayStateSpot(state.Key{Gateway: n.facts.gateway, Realm: n.facts.realm, Kind: n.facts.scope, Name: n.facts.name})
	},
}

// gatewayStateSpot is where a record's value lies in its tenant.
func gatewayStateSpot(k state.Key) spot {
	var name []byte
	for _, part := range []string{k.Gateway, k.Realm, k.Kind, k.Name} {
		name = appendPart(name, part)
	}
	return spot{inGatewayState, string(name), 0}
}

const findRealm = "SELECT rid, records FROM gateway_realms WHERE tenant = ? AND gateway = ? AND realm = ?"

// gatewayStateStmts writes the records of gateways.
type gatewayStateStmts struct {
	addRealm, findRealm, countRealm, dropRealm *sql.Stmt
	find, set, drop, dropExpired               *sql.Stmt
	kept                                       *sql.Stmt
}

func (g *gatewayStateStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&g.addRealm:   "INSERT INTO gateway_realms (tenant, gateway, realm, records) VALUES (?, ?, ?, 0) ON CONFLICT (tenant, gateway, realm) DO NOTHING",
		&g.findRealm:  findRealm,
		&g.countRealm: "UPDATE gateway_realms SET records = records + ? WHERE rid = ? RETURNING tenant, records",
		&g.dropRealm:  "DELETE FROM gateway_realms WHERE rid = ?",
		&g.find:       "SELECT version, expires, length(name) + length(value) FROM gateway_state WHERE rid = ? AND kind = ? AND name = ?",
		&g.set: `INSERT INTO gateway_state (version, expires, value, rid, kind, name) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (rid, kind, name) DO UPDATE SET version = excluded.version, expires = excluded.expires, value = excluded.value`,
		&g.drop: "DELETE FROM gateway_state WHERE rid = ? AND kind = ? AND name = ?",
		&g.dropExpired: `DELETE FROM gateway_state WHERE (rid, kind, name) IN (
			SELECT rid, kind, name FROM gateway_state WHERE expires IS NOT NULL AND expires <= ? LIMIT CAST(? AS BIGINT))
			RETURNING rid, length(name) + length(value)`,
		&g.kept: "SELECT bytes FROM tenants WHERE tenant = ?",
	}
}

// findGatewayState and listGatewayState read records that have not expired.
const (
	selectGatewayState = `SELECT r.realm, s.name, s.version, s.expires, s.value
		FROM gateway_realms r CROSS JOIN gateway_state s ON s.rid = r.rid
		WHERE r.tenant = ? AND r.gateway = ? AND (s.expires IS NULL OR s.expires > ?) AND s.kind = ?`
	findGatewayState = selectGatewayState + " AND r.realm = ? AND s.name = ?"
	listGatewayState = selectGatewayState + ` AND r.realm BETWEEN ?5 AND ?6 AND (r.realm, s.name) > (?5, ?7)
		ORDER BY r.realm, s.name LIMIT CAST(?8 AS BIGINT)`
)

// gatewayState implements [state.Store].
type gatewayState struct{ *Store }

// GatewayState returns the records of gateways.
func (s *Store) GatewayState() state.Store { return gatewayState{s} }

func (g gatewayState) args(k state.Key) []any {
	return []any{[]byte(k.Tenant), []byte(k.Gateway), stamp(g.writer.now()), []byte(k.Kind)}
}

// Get implements [state.Store].
func (g gatewayState) Get(ctx context.Context, k state.Key) (state.Record, error) {
	list, err := g.query(ctx, k, g.readers.gatewayState, append(g.args(k), []byte(k.Realm), []byte(k.Name))...)
	list, err = decodeAll(list, err, g.openRecord)
	if g.isErasing(k.Tenant) || errors.Is(err, swarm.ErrErasing) || err == nil && len(list) == 0 {
		list, err = nil, state.ErrNotFound
	}
	if err != nil {
		return state.Record{}, gatewayStateFault("read", k, err)
	}
	return list[0], nil
}

// List implements [state.Store]. A tenant that is being erased has no records.
func (g gatewayState) List(ctx context.Context, of, after state.Key, limit int) (list []state.Record, err error) {
	last := []byte(of.Realm)
	if of.Realm == "" {
		last = beyond("")
	}
	for len(list) < limit {
		first := of.Realm
		if first == "" {
			first = after.Realm
		}
		kept, err := g.query(ctx, of, g.readers.gatewayStates, append(g.args(of), []byte(first), last, []byte(after.Name), limit-len(list))...)
		if err == nil && len(kept) > 0 {
			var readable []state.Record
			readable, err = decodeReadable(g.log, kept, g.openRecord)
			list = append(list, readable...)
		}
		switch {
		case g.isErasing(of.Tenant) || errors.Is(err, swarm.ErrErasing):
			return nil, nil
		case err != nil:
			return nil, gatewayStateFault("list", of, err)
		case len(kept) == 0:
			return list, nil
		}
		after = kept[len(kept)-1].Key
	}
	return list, nil
}

// query reads records, whose values are still sealed.
func (g gatewayState) query(ctx context.Context, of state.Key, stmt *sql.Stmt, args ...any) ([]state.Record, error) {
	return readRows(ctx, g.readers.query(stmt, args...), func(rows *sql.Rows) (state.Record, error) { return scanGatewayState(of, rows) })
}

// openRecord opens the value of a record.
func (g gatewayState) openRecord(r state.Record) (state.Record, error) {
	value, err := g.opener(tenantKey(r.Key.Tenant)).open(r.Value, gatewayStateSpot(r.Key))
	if err != nil {
		return r, gatewayStateFault("open", r.Key, err)
	}
	r.Value = value
	return r, nil
}

func scanGatewayState(of state.Key, rows *sql.Rows) (r state.Record, err error) {
	var realm, name []byte
	var expires sql.NullInt64
	err = rows.Scan(&realm, &name, &r.Version, &expires, &r.Value)
	r.Key, r.Key.Realm, r.Key.Name = of, string(realm), string(name)
	if expires.Valid {
		r.Expires = unstamp(expires.Int64)
	}
	return r, err
}

func gatewayStateFault(what string, k state.Key, err error) error {
	return fmt.Errorf("%s %s record %q of realm %q at gateway %q: %w", what, k.Kind, k.Name, k.Realm, k.Gateway, addAdvice(err))
}

// tenantKey is the key of what belongs to a tenant and to no swarm.
func tenantKey(tenant string) swarm.TaskKey {
	return swarm.TaskKey{InstanceKey: swarm.InstanceKey{Tenant: tenant}}
}

func (s *Store) isErasing(tenant string) bool {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.erasing[tenant]
}
