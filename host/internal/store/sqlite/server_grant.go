package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"skep/host/internal/swarm"
)

// grantStmts are the statements of budgets that hosts share. What a tenant has spent in a day and
// what hosts may still spend of it are never more than the budget together: a host that spends moves
// as much from its grant to the sum of the tenant, in the group that says what it was for. A host
// that is dead writes no group any more, so its grant is free again.
type grantStmts struct {
	spent, dropDead, left, grant, spend, drop *sql.Stmt
	// asked are the tenants that the host has asked a grant for. The others' budgets have no bound,
	// and what is spent of them needs no statement more.
	asked map[string]bool
}

func (g *grantStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&g.spent: "SELECT day, tokens, micro_usd FROM tenants WHERE tenant = ?",
		&g.dropDead: `DELETE FROM day_grants WHERE tenant = ?
			AND (day < ? OR NOT EXISTS (SELECT 1 FROM hosts h WHERE h.hid = day_grants.hid AND NOT h.dead))`,
		&g.left: `SELECT CAST(coalesce(sum(greatest(tokens, 0)), 0) AS BIGINT), CAST(coalesce(sum(greatest(micro_usd, 0)), 0) AS BIGINT)
			FROM day_grants WHERE tenant = ?`,
		&g.grant: `INSERT INTO day_grants AS g VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (tenant, hid) DO UPDATE SET tokens = greatest(g.tokens, 0) + excluded.tokens, micro_usd = greatest(g.micro_usd, 0) + excluded.micro_usd`,
		&g.spend: "UPDATE day_grants SET tokens = tokens - ?, micro_usd = micro_usd - ? WHERE tenant = ? AND hid = ? AND day = ?",
		&g.drop:  "DELETE FROM day_grants WHERE tenant = ?",
	}
}

// spendGrant takes what a group has spent from the host's grant.
func (s *sharedStmts) spendGrant(ctx context.Context, c tenantDelta) error {
	if s == nil || c.Spend == (swarm.Spend{}) || !s.granting.asked[c.tenant] {
		return nil
	}
	_, err := s.granting.spend.ExecContext(ctx, c.Tokens, c.MicroUSD, []byte(c.tenant), s.hid, c.Day)
	return err
}

// dropGrants forgets the grants of an erased tenant.
func (s *sharedStmts) dropGrants(ctx context.Context, tenant string) error {
	if s == nil {
		return nil
	}
	_, err := s.granting.drop.ExecContext(ctx, []byte(tenant))
	return err
}

// spendGrant grants a host part of a tenant's budget of a day.
type spendGrant struct {
	tenant       string
	day          int64
	least, bound swarm.Spend
	// granted is nothing when less than least is left, which is rest.
	granted, rest swarm.Spend
}

func (*spendGrant) bytes() int { return 0 }

func (g *spendGrant) apply(ctx context.Context, t *tables) (steps int, err error) {
	s := &t.shared.granting
	s.asked[g.tenant] = true
	// It locks the tenant's row, in which hosts count what they have spent.
	if _, err := t.addFootprint.ExecContext(ctx, []byte(g.tenant), 0, 0, g.day, 0, 0, 0); err != nil {
		return 0, err
	}
	var day int64
	var spent, held swarm.Spend
	if err := s.spent.QueryRowContext(ctx, []byte(g.tenant)).Scan(&day, &spent.Tokens, &spent.MicroUSD); err != nil {
		return 0, err
	}
	g.granted, g.rest = swarm.Spend{}, swarm.Spend{}
	if day != g.day { // by another host's clock it is over
		return 0, nil
	}
	if _, err := s.dropDead.ExecContext(ctx, []byte(g.tenant), g.day); err != nil {
		return 0, err
	}
	if err := s.left.QueryRowContext(ctx, []byte(g.tenant)).Scan(&held.Tokens, &held.MicroUSD); err != nil {
		return 0, err
	}
	g.rest = g.bound.Minus(spent).Minus(held)
	tokens, enough := slice(g.least.Tokens, g.rest.Tokens, g.bound.Tokens)
	money, enoughMoney := slice(g.least.MicroUSD, g.rest.MicroUSD, g.bound.MicroUSD)
	if !enough || !enoughMoney {
		return 0, nil
	}
	g.granted = swarm.Spend{Tokens: tokens, MicroUSD: money}
	_, err = s.grant.ExecContext(ctx, []byte(g.tenant), t.shared.hid, g.day, tokens, money)
	return 0, err
}

// slicePart of what is left of a budget is granted at once, so that a host need not ask for each
// call and leaves the others most of it.
const slicePart = 50

// slice is how much of what is left is granted, at least a least amount. A bound of zero is none.
func slice(least, rest, bound int64) (n int64, ok bool) {
	switch {
	case bound == 0 || least == 0:
		return 0, true
	case least > rest:
		return 0, false
	}
	return max(least, rest/slicePart), true
}

// GrantSpend lets the host spend part of a tenant's budget of a day, at least a least amount. If
// less is left it grants nothing, and returns what is left.
func (s *Store) GrantSpend(ctx context.Context, tenant string, day int64, least, bound swarm.Spend) (granted, rest swarm.Spend, err error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.erasing[tenant] {
		return granted, rest, fmt.Errorf("%w: %q", swarm.ErrErasing, tenant)
	}
	g := &spendGrant{tenant: tenant, day: day, least: least, bound: bound}
	if err := s.writer.submit(ctx, g); err != nil {
		return granted, rest, fmt.Errorf("grant part of a budget: %w", addAdvice(err))
	}
	return g.granted, g.rest, nil
}
