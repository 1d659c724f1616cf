package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skep/host/client"
)

const usageHelp = `Usage shows what turns have used in the last 24 hours, the dearest first: turns, failures
by cause, CPU time, fuel, tokens that models have read and written, and what they cost by
the prices in swarm.toml. Of one tenant it also shows what is stored, and each quota with
what is left of it.

It takes an admin's key for the own tenant, and an operator's for others and for all.
Usage is counted by the minute and kept for 7 days. A turn counts when it is committed,
and once, also when it was run again after a crash.`

const usageExample = `  skep usage
  skep usage --scope host --by tenant
  skep usage --by model --since 1h
  skep usage --by hour --agent writer
  skep usage -o json | jq '.total.micro_usd / 1e6'`

const tenantUsageHelp = `Usage asks a running host what a tenant's turns have used in the last 24 hours, the
dearest agent first, what the tenant stores, and what is left of its quotas. Without
TENANT it is your own.`

const tenantUsageExample = `  skep tenant usage acme
  skep tenant usage acme --by model
  skep tenant usage acme -o json | jq '.quota[] | select(.left == 0).name'`

// maxUsageSums is what one answer has: the minutes of a week.
const maxUsageSums = 10_080

// usageFlags are the flags of usage.
type usageFlags struct {
	query        client.UsageQuery
	since, until string
}

func (f *usageFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.query.By, "by", "agent", "sum by `WHAT`: tenant, agent, model, minute, hour, day")
	flags.StringVar(&f.query.Agent, "agent", "", "only this `AGENT`")
	flags.StringVar(&f.query.Model, "model", "", "only calls of this `MODEL`, by the provider's name")
	flags.StringVar(&f.since, "since", "", "from `TIME` on: an RFC 3339 date-time, or a span as 90m before now")
	flags.StringVar(&f.until, "until", "", "up to `TIME`")
	flags.IntVar(&f.query.Limit, "limit", 1000, "show at most `N` sums")
}

func (f *usageFlags) read(now time.Time) (err error) {
	if f.query.Limit < 1 || f.query.Limit > maxUsageSums {
		return usagef("--limit is 1 to %d, not %d", maxUsageSums, f.query.Limit)
	}
	if f.query.Since, err = readTime("--since", f.since, now); err == nil {
		f.query.Until, err = readTime("--until", f.until, now)
	}
	return err
}

func (a *app) usageCommand() *cobra.Command {
	var f usageFlags
	cmd := &cobra.Command{
		Use: "usage", Short: "Show what turns have used", GroupID: groupHost, Args: atMost(0), Long: usageHelp, Example: usageExample,
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.query.Scope, "scope", "", "of `SCOPE`: tenant, or host for all tenants")
	cmd.Flags().StringVar(&f.query.Tenant, "tenant", "", "of this `TENANT`, for operators")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error { return a.showUsage(cmd, c, f) })
	return cmd
}

func (a *app) tenantUsageCommand() *cobra.Command {
	var f usageFlags
	cmd := &cobra.Command{
		Use: "usage [TENANT]", Short: "Show what a tenant uses, and what is left", Args: atMost(1), Long: tenantUsageHelp, Example: tenantUsageExample,
	}
	f.add(cmd.Flags())
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if len(args) == 1 {
			f.query.Tenant = args[0]
		}
		return a.showUsage(cmd, c, f)
	})
	return cmd
}

func (a *app) showUsage(cmd *cobra.Command, c *client.Client, f usageFlags) error {
	if err := f.read(time.Now()); err != nil {
		return err
	}
	u, err := c.Usage(cmd.Context(), f.query)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(u.Raw)
	}
	if err := a.printQuota(u); err != nil {
		return err
	}
	return a.printUsage(u)
}

func (a *app) printQuota(u client.UsageReport) error {
	if u.Tenant == nil {
		return nil
	}
	rows := [][]string{{"QUOTA", "USED", "LIMIT", "LEFT"}}
	for _, q := range u.Quota {
		text := quotaNumber(q.Name)
		limit, left := "none", "-"
		if q.Limit != nil && q.Left != nil {
			limit, left = text(*q.Limit), text(*q.Left)
		}
		name := inLine(q.Name)
		if q.SpeaksFor == "host" {
			name += " (this host)"
		}
		rows = append(rows, []string{name, text(q.Used), limit, left})
	}
	if err := a.printColumns(rows); err != nil {
		return err
	}
	return a.printf("\n")
}

func (a *app) printUsage(u client.UsageReport) error {
	if len(u.Sums) == 0 {
		a.notef("no turns between %s and %s", localTime(u.Since), localTime(u.Until))
		return nil
	}
	rows := [][]string{{strings.ToUpper(inLine(u.By)), "TURNS", "FAILED", "CPU", "FUEL", "IN", "OUT", "COST", "CAUSES"}}
	for _, s := range u.Sums {
		rows = append(rows, append([]string{usageName(u, s)}, usageCells(s)...))
	}
	if len(u.Sums) > 1 {
		rows = append(rows, append([]string{"total"}, usageCells(u.Total)...))
	}
	if err := a.printColumns(rows); err != nil {
		return err
	}
	if u.More {
		a.notef("there are more: --limit shows up to %d, or name a shorter time, an agent or a model", maxUsageSums)
	}
	return nil
}

// usageName is the first cell of a row.
func usageName(u client.UsageReport, s client.UsageSum) string {
	switch {
	case !s.At.IsZero():
		return localTime(s.At)
	case u.By == "agent" && u.Tenant == nil:
		return inLine(s.Tenant + "/" + s.Agent)
	}
	return inLine(cmp.Or(s.Agent, s.Model, s.Tenant, "-"))
}

func usageCells(s client.UsageSum) []string {
	var causes []string
	for _, cause := range slices.Sorted(maps.Keys(s.Causes)) {
		causes = append(causes, fmt.Sprintf("%s %d", inLine(cause), s.Causes[cause]))
	}
	n := func(n int64) string { return quantity(uint64(max(0, n))) }
	return []string{
		strconv.FormatInt(s.Turns, 10), strconv.FormatInt(s.Failures, 10), span(time.Duration(s.CPU * float64(time.Millisecond))), n(s.Fuel),
		n(s.Input), n(s.Output), moneyText(s.MicroUSD), strings.Join(causes, ", "),
	}
}
