package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// UsageQuery selects what turns have used. Fields that are zero select all.
type UsageQuery struct {
	// Scope is tenant, or host for all tenants; empty is tenant.
	Scope string
	// Tenant is the tenant; empty is the caller's own.
	Tenant string
	// Agent and Model, a provider's name, select a part.
	Agent, Model string
	// Since is the first minute, a day before Until if it is zero. Until is now if it is zero.
	Since, Until time.Time
	// By is what is summed: tenant, agent, model, minute, hour or day.
	By string
	// Limit bounds the sums, 1 to 10,080; 0 is 1,000.
	Limit int
}

// UsageSum is what some turns have used.
type UsageSum struct {
	// Tenant, Agent, Model or At are set by what is summed; Model is empty for what is no call of
	// a model.
	Tenant string    `json:"tenant"`
	Agent  string    `json:"agent"`
	Model  string    `json:"model"`
	At     time.Time `json:"at"`

	Turns    int64 `json:"turns"`
	Failures int64 `json:"failures"`
	// Causes counts failures.
	Causes map[string]int64 `json:"causes"`
	Fuel   int64            `json:"fuel"`
	// CPU is in milliseconds.
	CPU    float64 `json:"cpu_ms"`
	Input  int64   `json:"input_tokens"`
	Output int64   `json:"output_tokens"`
	// MicroUSD is in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd"`
}

// QuotaUse is how much of a quota a tenant uses.
type QuotaUse struct {
	// Name is the key in [tenants.NAME]; usd_per_day is in millionths of a dollar.
	Name string `json:"name"`
	Used int64  `json:"used"`
	// Limit and Left are nil where there is no quota.
	Limit *int64 `json:"limit"`
	Left  *int64 `json:"left"`
	// SpeaksFor is store, or host for what each host counts and bounds for itself.
	SpeaksFor string `json:"speaks_for"`
}

// UsageReport is what turns have used in a time.
type UsageReport struct {
	// Tenant is nil for all tenants.
	Tenant *string    `json:"tenant"`
	By     string     `json:"by"`
	Since  time.Time  `json:"since"`
	Until  time.Time  `json:"until"`
	Sums   []UsageSum `json:"usage"`
	// More is set if sums were left out.
	More  bool     `json:"more"`
	Total UsageSum `json:"total"`
	// Stored and Quota are of one tenant.
	Stored *struct {
		Bytes int64 `json:"bytes"`
		Tasks int64 `json:"tasks"`
	} `json:"stored"`
	Quota     []QuotaUse `json:"quota"`
	SpeaksFor string     `json:"speaks_for"`
	// Raw is the answer as the host wrote it.
	Raw json.RawMessage `json:"-"`
}

// Usage returns what turns have used. It takes an admin, and for other tenants an operator.
func (c *Client) Usage(ctx context.Context, q UsageQuery) (u UsageReport, err error) {
	v := url.Values{}
	for name, value := range map[string]string{"scope": q.Scope, "tenant": q.Tenant, "agent": q.Agent, "model": q.Model, "by": q.By} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Limit != 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	path := "/skep/v1/usage"
	if len(v) > 0 {
		path += "?" + v.Encode()
	}
	if _, err := c.do(ctx, call{method: http.MethodGet, path: path}, &u.Raw); err != nil {
		return u, err
	}
	err = json.Unmarshal(u.Raw, &u)
	return u, err
}
