package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"skep/host/internal/swarm"
)

// admissionStmts are the statements by which a group finds out what tenants have at all hosts.
type admissionStmts struct {
	use, open *sql.Stmt
	// admitted are the changes of the group in hand that have bounds, by tenant.
	admitted map[string][]*encodedMutation
}

func (a *admissionStmts) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&a.use:  "SELECT day, made, bytes FROM tenants WHERE tenant = ?",
		&a.open: "SELECT count(*) FROM tasks WHERE state = 'running' AND tenant = ?",
	}
}

// errExceeded: with the group a tenant has more than it may. Some of its changes are refused, and the
// group begins again.
var errExceeded = errors.New("the group exceeds the quota of a tenant")

// admit notes that a change is part of the group.
func (s *sharedStmts) admit(c change) {
	if e, ok := c.(*encodedMutation); ok && s != nil && e.admission != nil && !e.refused && e.earlier == nil {
		s.admitting.admitted[e.key.Tenant] = append(s.admitting.admitted[e.key.Tenant], e)
	}
}

// beginAdmissions forgets the changes of the last group.
func (s *sharedStmts) beginAdmissions() {
	if s != nil {
		clear(s.admitting.admitted)
	}
}

// checkAdmissions refuses the newest changes with which their tenants have more than they may, and returns
// errExceeded if there are any. It comes after the sums of tenants are written: their rows keep other
// hosts from adding to them until the group ends.
func (s *sharedStmts) checkAdmissions(ctx context.Context) (err error) {
	if s == nil {
		return nil
	}
	for tenant, list := range s.admitting.admitted {
		use, read := s.readUse(ctx, tenant, list)
		if read != nil {
			return read
		}
		if refuseNewest(list, use) {
			err = errExceeded
		}
	}
	return err
}

// refuseNewest refuses changes of a tenant until what it has with the others is within their bounds.
func refuseNewest(list []*encodedMutation, use swarm.TenantUse) (any bool) {
	for i := len(list) - 1; i >= 0; i-- {
		if e := list[i]; e.admission.Exceeds(use) {
			use, e.refused, any = e.admission.Without(use, int64(e.size)), true, true
		}
	}
	for _, e := range list {
		if e.refused {
			e.admission.Has, e.admission.Adds = use, int64(e.size)
		}
	}
	return any
}

// readUse reads what a tenant has with the group.
func (s *sharedStmts) readUse(ctx context.Context, tenant string, list []*encodedMutation) (use swarm.TenantUse, err error) {
	var day int64
	if err := s.admitting.use.QueryRowContext(ctx, []byte(tenant)).Scan(&day, &use.Made, &use.Bytes); err != nil {
		return use, err
	}
	counts := false
	for _, e := range list {
		counts = counts || e.admission.CountsTasks()
		if e.day() != day { // by another host's clock it is over
			use.Made = 0
		}
	}
	if counts {
		err = s.admitting.open.QueryRowContext(ctx, []byte(tenant)).Scan(&use.Running)
	}
	return use, err
}

// CountRunning counts the tasks of tenants that run, at all hosts, for those that have any.
func (s *Store) CountRunning(ctx context.Context, tenants []string) (map[string]int, error) {
	running := map[string]int{}
	if len(tenants) == 0 {
		return running, nil
	}
	args := make([]any, len(tenants))
	for i, tenant := range tenants {
		args[i] = []byte(tenant)
	}
	text := "SELECT tenant, count(*) FROM tasks WHERE state = 'running' AND tenant IN (?" + strings.Repeat(", ?", len(tenants)-1) + ") GROUP BY tenant"
	_, err := readRows(ctx, s.readers.queryText(text, args...), func(rows *sql.Rows) (struct{}, error) {
		var tenant []byte
		var n int
		err := rows.Scan(&tenant, &n)
		running[string(tenant)] = n
		return struct{}{}, err
	})
	if err != nil {
		return nil, fmt.Errorf("count the running tasks of %d tenants: %w", len(tenants), addAdvice(err))
	}
	return running, nil
}
