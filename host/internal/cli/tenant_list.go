package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/datadir"
	"skep/host/internal/definition/config"
)

const tenantListHelp = `List shows what each tenant keeps, and of each of its quotas what is used and what is left.
It reads the data directory, also without a host. The tasks that run and the messages that
wait are known to the host that runs on it, or to the one that --url names, which is asked
with an operator's key.`

func (a *app) tenantListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List who keeps what, and what is left of quotas", Args: atMost(0), Long: tenantListHelp,
		Example: `  skep tenant list
  skep tenant list -o json | jq -r '.tenants[] | select(.quota[].left == 0).tenant'`,
		RunE: a.command(func(cmd *cobra.Command, _ []string) error {
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
	if broken == nil {
		list, err = tenantsOfData(ctx, data, cfg)
	} else {
		list, err = tenantsOfData(ctx, data, &config.Config{})
	}
	if err != nil || broken != nil || a.common.set["data"] || !a.isServed(ctx, cfg) {
		return list, err
	}
	return a.addLoads(ctx, list), nil
}

func tenantsOfData(ctx context.Context, data datadir.Data, cfg *config.Config) (list []tenantJSON, err error) {
	found, err := data.Tenants(ctx, cfg)
	for _, t := range found {
		one := tenantJSON{t.Name, t.Tasks, t.Bytes, []client.QuotaUse{}}
		for _, q := range t.Quota {
			use := client.QuotaUse{Name: q.Name, Used: q.Used, SpeaksFor: "store"}
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

func tenantsOfHost(ctx context.Context, c *client.Client) (list []tenantJSON, err error) {
	found, err := c.Tenants(ctx)
	for _, t := range found {
		list = append(list, tenantJSON{t.Tenant, t.Stored.Tasks, t.Stored.Bytes, t.Quota})
	}
	return list, err
}

// addLoads has the host's quotas in place of those of the directory, if it answers.
func (a *app) addLoads(ctx context.Context, list []tenantJSON) []tenantJSON {
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
	quota := map[string][]client.QuotaUse{}
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
	Tenant string            `json:"tenant"`
	Tasks  int64             `json:"tasks"`
	Bytes  int64             `json:"bytes"`
	Quota  []client.QuotaUse `json:"quota"`
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
func quotasText(quota []client.QuotaUse) string {
	var list []string
	for _, q := range quota {
		if q.Limit == nil || q.Left == nil {
			continue
		}
		text := quotaNumber(q.Name)
		left := "used up"
		if *q.Left > 0 {
			left = text(*q.Left) + " left"
		}
		list = append(list, inLine(q.Name)+" "+text(q.Used)+" of "+text(*q.Limit)+" ("+left+")")
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
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
