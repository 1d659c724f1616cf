package rest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"skep/host/internal/api/auth"
	"skep/host/internal/swarm"
)

// usageGroup is the usage of a tenant, an agent, a model or a time.
type usageGroup struct {
	// Only the fields of what usage is summed by are set.
	Tenant string  `json:"tenant,omitempty"`
	Agent  string  `json:"agent,omitempty"`
	Model  *string `json:"model,omitempty"`
	At     string  `json:"at,omitempty"`
	usageSum
}

type usageSum struct {
	Turns    int64            `json:"turns"`
	Failures int64            `json:"failures"`
	Causes   map[string]int64 `json:"causes"`
	Fuel     int64            `json:"fuel"`
	CPU      float64          `json:"cpu_ms"`
	Input    int64            `json:"input_tokens"`
	Output   int64            `json:"output_tokens"`
	MicroUSD int64            `json:"micro_usd"`
}

// newUsageSum shows a sum. A correction may lie in another time than what it corrects.
func newUsageSum(s swarm.UsageSum, causes map[string]int64) usageSum {
	output := max(0, s.Output)
	return usageSum{
		max(0, s.Turns), max(0, s.Failures), causes, max(0, s.Fuel), ms(max(0, s.CPU)),
		max(0, s.Tokens-output), output, max(0, s.MicroUSD),
	}
}

// quotaUse is how much of a quota is used.
type quotaUse struct {
	Name string `json:"name"`
	Used int64  `json:"used"`
	// Limit and Left are null where there is no quota.
	Limit *int64 `json:"limit"`
	Left  *int64 `json:"left"`
	// SpeaksFor is store, or host for what each host counts and bounds for itself.
	SpeaksFor string `json:"speaks_for"`
}

func newQuotaUse(q swarm.QuotaUse) quotaUse {
	out := quotaUse{Name: q.Name, Used: max(0, q.Used), SpeaksFor: "store"}
	if q.Limit > 0 {
		left := max(0, q.Limit-q.Used)
		out.Limit, out.Left = &q.Limit, &left
	}
	if q.Local {
		out.SpeaksFor = "host"
	}
	return out
}

// usageAnswer is the answer of GET /skep/v1/usage.
type usageAnswer struct {
	// Tenant is null for all tenants.
	Tenant *string      `json:"tenant"`
	By     string       `json:"by"`
	Since  string       `json:"since"`
	Until  string       `json:"until"`
	Usage  []usageGroup `json:"usage"`
	// More is set if groups were left out.
	More  bool     `json:"more"`
	Total usageSum `json:"total"`
	// Stored and Quota are of one tenant.
	Stored    *storedUse `json:"stored"`
	Quota     []quotaUse `json:"quota"`
	SpeaksFor string     `json:"speaks_for"`
}

type storedUse struct {
	Bytes int64 `json:"bytes"`
	Tasks int64 `json:"tasks"`
}

// usageDims are what usage may be summed by.
var usageDims = []swarm.UsageBy{
	swarm.UsageByTenant, swarm.UsageByAgent, swarm.UsageByModel, swarm.UsageByMinute, swarm.UsageByHour, swarm.UsageByDay,
}

// usage is GET /skep/v1/usage.
func (c *call) usage() error {
	limit, err := c.intParam("limit", 1000, 1, 10_080)
	if err != nil {
		return err
	}
	q, err := c.usageQuery()
	if err != nil {
		return err
	}
	groups, err := c.h.usage.Usage(c.ctx(), q)
	if err != nil {
		return err
	}
	out := usageAnswer{
		Tenant: textOrNull(q.Tenant), By: string(q.By), Since: formatTime(q.Since), Until: formatTime(q.Until),
		Usage: []usageGroup{}, Quota: []quotaUse{}, SpeaksFor: "store",
	}
	out.addGroups(q.By, groups, int(limit))
	if q.Tenant != "" {
		found, err := c.h.usage.QuotaUse(c.ctx(), q.Tenant)
		if err != nil {
			return err
		}
		use := newTenantUse(found)
		out.Stored, out.Quota = &use.Stored, use.Quota
	}
	return c.reply(out)
}

// addGroups adds groups: the newest times, or the dearest of others first.
func (u *usageAnswer) addGroups(by swarm.UsageBy, groups []swarm.UsageGroup, limit int) {
	var total swarm.UsageSum
	causes := map[string]int64{}
	for _, g := range groups {
		if g.Model != "" {
			g.Failures, g.Causes = 0, nil // of its calls: a turn may go on without an answer
		}
		total = total.Add(g.UsageSum)
		for cause, n := range g.Causes {
			causes[cause] += n
		}
	}
	u.Total = newUsageSum(total, causes)
	if by.Span() > 0 {
		slices.Reverse(groups)
	} else {
		slices.SortStableFunc(groups, func(a, b swarm.UsageGroup) int {
			return cmp.Or(cmp.Compare(b.MicroUSD, a.MicroUSD), cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Turns, a.Turns))
		})
	}
	if u.More = len(groups) > limit; u.More {
		groups = groups[:limit]
	}
	for _, g := range groups {
		one := usageGroup{Tenant: g.Tenant, Agent: g.Agent, usageSum: newUsageSum(g.UsageSum, g.Causes)}
		if by == swarm.UsageByModel {
			one.Model = &g.Model
		}
		if !g.At.IsZero() {
			one.At = formatTime(g.At)
		}
		u.Usage = append(u.Usage, one)
	}
}

// usageQuery reads what is summed. It is counted by tenant, not by principal: users see none.
func (c *call) usageQuery() (q swarm.UsageQuery, err error) {
	if q.Tenant, err = c.usageTenant(); err != nil {
		return q, err
	}
	if q.Agent, err = c.param("agent"); err != nil {
		return q, err
	}
	if q.Model, err = c.param("model"); err != nil {
		return q, err
	}
	if err := c.usageSpan(&q); err != nil {
		return q, err
	}
	by, err := c.param("by")
	q.By = swarm.UsageBy(cmp.Or(by, string(swarm.UsageByTenant)))
	if err == nil && !slices.Contains(usageDims, q.By) {
		var names []string
		for _, one := range usageDims {
			names = append(names, string(one))
		}
		err = badRequest("by must be one of %s", strings.Join(names, ", "))
	}
	return q, err
}

// usageSpan reads of which minutes the usage is, the one that is not over by default included. Bounds
// within a minute are rounded down, both of them: a minute is in one of two spans that meet.
func (c *call) usageSpan(q *swarm.UsageQuery) (err error) {
	if q.Until, err = c.timeParam("until", time.Now().Add(time.Minute)); err != nil {
		return err
	}
	q.Until = q.Until.UTC().Truncate(time.Minute)
	q.Since, err = c.timeParam("since", q.Until.Add(-24*time.Hour))
	q.Since = q.Since.UTC().Truncate(time.Minute)
	return err
}

// usageTenant reads whose usage is asked for; empty is everybody's.
func (c *call) usageTenant() (string, error) {
	scope, err := c.param("scope")
	if err != nil {
		return "", err
	}
	tenant, err := c.requestedTenant()
	switch {
	case err != nil:
		return "", err
	case scope == "host" && c.w.who.Role != auth.Operator:
		return "", denied("only operators see the usage of all tenants", "asked for scope host")
	case scope == "host":
		return c.param("tenant")
	case scope == "", scope == "own", scope == "tenant":
		return tenant, nil
	}
	return "", badRequest("scope must be own, tenant or host")
}

// timeParam reads a time in the query.
func (c *call) timeParam(name string, def time.Time) (time.Time, error) {
	text, err := c.param(name)
	if err != nil || text == "" {
		return def, err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return def, badRequest("%s must be an RFC 3339 date-time", name)
	}
	return at, nil
}
