package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"skep/host/internal/swarm"
)

// usageSums are what scanUsage reads.
const usageSums = `CAST(sum(turns) AS BIGINT), CAST(sum(failures) AS BIGINT), CAST(sum(fuel) AS BIGINT), CAST(sum(cpu) AS BIGINT),
	CAST(sum(tokens) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(micro_usd) AS BIGINT)`

// Usage implements [swarm.Tenants]. It reads the minutes of one tenant after the other.
func (s *Store) Usage(ctx context.Context, q swarm.UsageQuery) ([]swarm.UsageGroup, error) {
	sums := usageGroups{}
	read := func(tenant string) error { return s.readers.sumUsage(ctx, q, tenant, sums) }
	err := error(nil)
	if q.Tenant != "" {
		err = read(q.Tenant)
	} else {
		err = s.readers.eachUsageTenant(ctx, read)
	}
	return sums.list(), wrapError("read usage of tenant", q.Tenant, err)
}

// eachUsageTenant visits the tenants that have any usage.
func (r *readers) eachUsageTenant(ctx context.Context, visit func(tenant string) error) error {
	for tenant := []byte{}; ; {
		err := r.queryText("SELECT tenant FROM usage WHERE tenant > ? ORDER BY tenant LIMIT 1", tenant).first(ctx, &tenant)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = visit(string(tenant))
		}
		if err != nil {
			return err
		}
	}
}

// usageText sums the rows of a tenant by the column of a query and by cause.
func usageText(q swarm.UsageQuery) string {
	column := string(q.By)
	if span := q.By.Span(); span > 0 {
		column = "minute - minute % " + strconv.Itoa(int(span/time.Minute))
	}
	sums := usageSums
	if q.By != swarm.UsageByModel && q.Model == "" { // a failed call of a model is no failed turn
		sums = strings.Replace(sums, "sum(failures)", "sum(CASE WHEN model = x'' THEN failures ELSE 0 END)", 1)
	}
	text := "SELECT " + column + ", cause, " + sums + " FROM usage WHERE tenant = ? AND minute >= ? AND minute < ?"
	for _, f := range []struct{ column, value string }{{"agent", q.Agent}, {"model", q.Model}} {
		if f.value != "" {
			text += " AND " + f.column + " = ?"
		}
	}
	return text + " GROUP BY 1, 2"
}

func usageArgs(q swarm.UsageQuery, tenant string) []any {
	until := int64(math.MaxInt64)
	if !q.Until.IsZero() {
		until = minuteOf(q.Until.Add(time.Minute - 1))
	}
	args := []any{[]byte(tenant), minuteOf(q.Since), until}
	for _, name := range []string{q.Agent, q.Model} {
		if name != "" {
			args = append(args, []byte(name))
		}
	}
	return args
}

// minuteOf is the number of a minute since 1970.
func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// usageGroups are groups by their names and times.
type usageGroups map[usageName]*swarm.UsageGroup

type usageName struct {
	tenant, agent, model string
	minute               int64
}

// sumUsage adds the usage of one tenant to groups.
func (r *readers) sumUsage(ctx context.Context, q swarm.UsageQuery, tenant string, sums usageGroups) error {
	type found struct {
		name  usageName
		cause []byte
		swarm.UsageSum
	}
	list, err := readRows(ctx, r.queryText(usageText(q), usageArgs(q, tenant)...), func(rows *sql.Rows) (f found, err error) {
		var text []byte
		into := any(&text)
		if q.By.Span() > 0 {
			into = &f.name.minute
		}
		err = rows.Scan(into, &f.cause, &f.Turns, &f.Failures, &f.Fuel, &f.CPU, &f.Tokens, &f.Output, &f.MicroUSD)
		switch q.By {
		case swarm.UsageByTenant:
			f.name.tenant = tenant
		case swarm.UsageByAgent:
			f.name.tenant, f.name.agent = tenant, string(text)
		case swarm.UsageByModel:
			f.name.model = string(text)
		}
		return f, err
	})
	for _, f := range list {
		sums.add(f.name, string(f.cause), f.UsageSum)
	}
	return err
}

func (g usageGroups) add(name usageName, cause string, sum swarm.UsageSum) {
	one := g[name]
	if one == nil {
		one = &swarm.UsageGroup{Tenant: name.tenant, Agent: name.agent, Model: name.model, Causes: map[string]int64{}}
		if name.minute > 0 {
			one.At = time.Unix(60*name.minute, 0).UTC()
		}
		g[name] = one
	}
	one.UsageSum = one.Add(sum)
	if cause != "" && sum.Failures > 0 {
		one.Causes[cause] += sum.Failures
	}
}

// list lists the groups in the order of their times and names.
func (g usageGroups) list() []swarm.UsageGroup {
	list := make([]swarm.UsageGroup, 0, len(g))
	for _, one := range g {
		list = append(list, *one)
	}
	slices.SortFunc(list, func(a, b swarm.UsageGroup) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	return list
}

// usageLine is the data of a line of usage in an export.
type usageLine struct {
	At       time.Time `json:"at"`
	Model    string    `json:"model,omitempty"`
	Cause    string    `json:"cause,omitempty"`
	Turns    int64     `json:"turns,omitempty"`
	Failures int64     `json:"failures,omitempty"`
	Fuel     int64     `json:"fuel,omitempty"`
	CPU      int64     `json:"cpu_ns,omitempty"`
	Tokens   int64     `json:"tokens,omitempty"`
	Output   int64     `json:"output_tokens,omitempty"`
	MicroUSD int64     `json:"micro_usd,omitempty"`
}

// usageRow is a row of a tenant's usage.
type usageRow struct {
	minute              int64
	agent, model, cause []byte
	usageLine
}

// exportUsage writes a tenant's usage, a page at a time.
func (s *Store) exportUsage(ctx context.Context, tenant string, enc *json.Encoder) error {
	const text = `SELECT minute, agent, model, cause, turns, failures, fuel, cpu, tokens, output, micro_usd FROM usage
		WHERE tenant = ? AND (minute, agent, model, cause) > (?, ?, ?, ?) ORDER BY minute, agent, model, cause LIMIT 1000`
	last := usageRow{minute: -1, agent: []byte{}, model: []byte{}, cause: []byte{}}
	for {
		q := s.readers.queryText(text, []byte(tenant), last.minute, last.agent, last.model, last.cause)
		page, err := readRows(ctx, q, func(rows *sql.Rows) (r usageRow, err error) {
			err = rows.Scan(&r.minute, &r.agent, &r.model, &r.cause, &r.Turns, &r.Failures, &r.Fuel, &r.CPU, &r.Tokens, &r.Output, &r.MicroUSD)
			return r, err
		})
		if err != nil {
			return fmt.Errorf("read usage: %w", addAdvice(err))
		}
		for _, r := range page {
			r.At, r.Model, r.Cause = time.Unix(60*r.minute, 0).UTC(), string(r.model), string(r.cause)
			raw, err := json.Marshal(r.usageLine)
			if err == nil {
				err = enc.Encode(line{Kind: "usage", Agent: string(r.agent), Data: raw})
			}
			if err != nil {
				return err
			}
			last = r
		}
		if len(page) == 0 {
			return nil
		}
	}
}
