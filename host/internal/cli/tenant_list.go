package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition"
	"skep/host/internal/definition/config"
)

const tenantListHelp = `List shows what each tenant keeps, and of each of its quotas but turns what is used
and what is left. It reads the data directory, also without a host. The tasks that run and
the messages that wait are known to the host that runs on it, or to the one that --url
names, which is asked with an operator's key.`

func (a *app) tenantListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List who keeps what, and what is left of quotas", Args: atMost(0), Long: tenantListHelp,
		Example: `  skep tenant list
  skep tenant list -o json | jq -r '.tenants[] | select(any(.quota[]; .left == 0)).tenant'`,
		RunE: a.commandOnData(func(cmd *cobra.Command, _ []string) error {
			list, err := a.listTenants(cmd.Context())
			if err != nil {
				return err
			}
			return a.printTenants(list)
		}),
	}
}

// listTenants asks the host that --url names, or reads the data directory and asks the host of its file
// for what only that knows.
func (a *app) listTenants(ctx context.Context) (list []tenantJSON, err error) {
	if a.common.url != "" {
		c, err := a.connect()
		if err != nil {
			return nil, err
		}
		defer c.Close()
		return tenantsOfHost(ctx, c)
	}
	data, err := a.dataOptions()
	if err != nil {
		return nil, err
	}
	cfg, broken := a.readConfig(false, time.Time{})
	if broken != nil {
		return a.tenantsWithoutFile(ctx, data, broken)
	}
	list, err = tenantsOfData(ctx, data, cfg)
	if err != nil || a.common.set["data"] || !a.isServed(ctx, cfg) {
		return list, err
	}
	return a.addLoads(ctx, list), nil
}

// tenantsWithoutFile lists who keeps anything while the file with the quotas cannot be read.
func (a *app) tenantsWithoutFile(ctx context.Context, data datadir.Data, broken error) ([]tenantJSON, error) {
	list, err := tenantsOfData(ctx, data, &config.Config{})
	if explain(broken).code == exitNotFound && !a.common.set["config"] {
		return list, err // a directory without a file has no quotas
	}
	for i := range list {
		list[i].Quota = nil
	}
	if err == nil {
		a.notef("quotas are not shown: %s", printable(broken.Error()))
	}
	return list, err
}

func tenantsOfData(ctx context.Context, data datadir.Data, cfg *config.Config) (list []tenantJSON, err error) {
	limits := definition.Tenants(cfg)
	found, err := data.Tenants(ctx, cfg)
	for _, t := range found {
		quota := limits[t.Name].Quota
		one := tenantJSON{t.Name, t.Tasks, t.Bytes, []quotaJSON{unknownUse("tasks", quota.Tasks), unknownUse("queue", quota.Queue)}}
		for _, q := range t.Quota {
			use := quotaJSON{Name: q.Name, Used: &q.Used, SpeaksFor: "store"}
			if q.Limit > 0 {
				left := max(0, q.Limit-q.Used)
				use.Limit, use.Left = &q.Limit, &left
			}
			one.Quota = append(one.Quota, use)
		}
		list = append(list, one)
	}
	return list, err
}

// unknownUse is a quota of which only a host knows what is used.
func unknownUse(name string, limit int) quotaJSON {
	q := quotaJSON{Name: name, SpeaksFor: "store"}
	if n := int64(limit); n > 0 {
		q.Limit = &n
	}
	return q
}

func tenantsOfHost(ctx context.Context, c *client.Client) (list []tenantJSON, err error) {
	found, err := c.Tenants(ctx)
	for _, t := range found {
		one := tenantJSON{t.Tenant, t.Stored.Tasks, t.Stored.Bytes, []quotaJSON{}}
		for _, q := range t.Quota {
			one.Quota = append(one.Quota, quotaJSON{q.Name, &q.Used, q.Limit, q.Left, q.SpeaksFor})
		}
		list = append(list, one)
	}
	return list, err
}

// addLoads has the host's quotas in place of what the directory has of them, if it answers soon.
func (a *app) addLoads(ctx context.Context, list []tenantJSON) []tenantJSON {
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	a.noWait = true
	c, err := a.connect()
	if err != nil {
		a.notef("the host that runs is not asked for tasks that run and messages that wait: %s", printable(err.Error()))
		return list
	}
	defer c.Close()
	running, err := tenantsOfHost(ctx, c)
	if err != nil {
		a.notef("the host does not say which tasks run and which messages wait: %s", printable(err.Error()))
		return list
	}
	quota := map[string][]quotaJSON{}
	for _, t := range running {
		quota[t.Tenant] = t.Quota
	}
	for i := range list {
		if q, known := quota[list[i].Tenant]; known {
			list[i].Quota = q
		}
	}
	return list
}

// tenantJSON is the JSON of a tenant.
type tenantJSON struct {
	Tenant string `json:"tenant"`
	Tasks  int64  `json:"tasks"`
	Bytes  int64  `json:"bytes"`
	// Quota is null if the file cannot be read.
	Quota []quotaJSON `json:"quota"`
}

// quotaJSON is the JSON of a quota. Used and Left are null for what only a host knows, Limit and Left without a quota.
type quotaJSON struct {
	Name      string `json:"name"`
	Used      *int64 `json:"used"`
	Limit     *int64 `json:"limit"`
	Left      *int64 `json:"left"`
	SpeaksFor string `json:"speaks_for"`
}

func (a *app) printTenants(list []tenantJSON) error {
	if a.json() {
		return a.printJSON(map[string]any{"tenants": append([]tenantJSON{}, list...)})
	}
	if len(list) == 0 {
		a.notef("no tenant keeps anything")
		return nil
	}
	rows := [][]string{{"TENANT", "TASKS", "BYTES", "QUOTAS"}}
	for _, t := range list {
		rows = append(rows, []string{inLine(t.Tenant), quantity(uint64(max(0, t.Tasks))), quantity(uint64(max(0, t.Bytes))), quotasText(t.Quota)})
	}
	return a.printColumns(rows)
}

// quotasText has what is used and left of each quota that a tenant has.
func quotasText(quota []quotaJSON) string {
	if quota == nil {
		return "?"
	}
	var list []string
	for _, q := range quota {
		if q.Limit != nil {
			list = append(list, q.text())
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// text has what is used and left of a quota that has a limit.
func (q quotaJSON) text() string {
	number := quotaNumber(q.Name)
	used, left := "?", "the host knows"
	if q.Used != nil && q.Left != nil {
		used, left = number(*q.Used), "used up"
		if *q.Left > 0 {
			left = number(*q.Left) + " left"
		}
	}
	return inLine(q.Name) + " " + used + " of " + number(*q.Limit) + " (" + left + ")"
}

// quotaNumber returns how a number of a quota is written.
func quotaNumber(name string) func(int64) string {
	if name == "usd_per_day" {
		return func(n int64) string {
			if n == 0 {
				return "$0"
			}
			return moneyText(n)
		}
	}
	return func(n int64) string { return quantity(uint64(max(0, n))) }
}
