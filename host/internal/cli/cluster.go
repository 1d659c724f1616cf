package cli

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) clusterCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "cluster", Short: "See and change which hosts share the tasks", GroupID: groupHost,
		Long: `Hosts whose files have [cluster] share the tasks of one PostgreSQL server. Any of them
answers these commands. They take an operator's key.

To take a host down without a wait for its callers, drain it, wait until the list shows
it as drained, and stop it. Once all hosts run a new version, finalize it.`,
	}, a.withCallFlags(a.clusterListCommand()), a.withCallFlags(a.clusterDrainCommand()), a.withCallFlags(a.clusterFinalizeCommand()))
}

const clusterListHelp = `List shows the hosts that are alive, as the one that answers has seen them last:

  ID          another one each time a host is started
  SLOTS       its part of the 1024 slots that tasks are cut into
  STATE       active; draining while it gives its slots away; drained without any
  VERSION     of skep, and the highest feature level that it has
  LAST SIGN   the time since its last sign of life; a host that gives none for
              [cluster] ttl loses its slots to the others and leaves the list`

func (a *app) clusterListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the hosts that share the tasks", Long: clusterListHelp, Args: atMost(0),
		Example: "  skep cluster list\n  skep cluster list -o json | jq -r '.hosts[] | select(.slots == 0).address'",
		RunE: a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			found, err := c.Cluster(cmd.Context())
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(found)
			}
			return a.printCluster(found)
		}),
	}
}

func (a *app) printCluster(found client.Cluster) error {
	rows := [][]string{{"ID", "ADDRESS", "SLOTS", "STATE", "VERSION", "LAST SIGN"}}
	for _, h := range found.Hosts {
		rows = append(rows, []string{
			strconv.FormatInt(h.ID, 10), inLine(h.Address), strconv.Itoa(h.Slots), inLine(h.State),
			inLine(h.Version) + " (features " + strconv.Itoa(h.Features) + ")", (time.Duration(h.SilentMS) * time.Millisecond).String(),
		})
	}
	if err := a.printColumns(rows); err != nil {
		return err
	}
	a.notef("the feature level is %d", found.FeatureLevel)
	return nil
}

// printColumns prints a table, whose first row has the names of its columns.
func (a *app) printColumns(rows [][]string) error {
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		line := ""
		for i, cell := range row[:len(row)-1] {
			line += pad(cell, wide[i]) + "  "
		}
		line += row[len(row)-1]
		if n == 0 {
			line = a.dataStyle().dim(line)
		}
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

const clusterDrainHelp = `Drain makes a host give its slots away and take no more. HOST is its id or its address
in "skep cluster list". It begins within a second or so and lets running turns end, for
[cluster] handover at most; the others go on with its tasks, and nothing is lost or
done twice. Its /readyz answers 503 once it has no slots, and it still answers callers,
by the other hosts. A host that is started again takes its part again.

The last host that takes tasks cannot be drained. If all others are lost, a drained host
takes tasks nevertheless.`

func (a *app) clusterDrainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "drain HOST", Short: "Make a host give its tasks to the others", Long: clusterDrainHelp, Args: exactArguments("the id or address of a HOST, which `skep cluster list` shows"),
		Example: "  skep cluster drain https://10.0.0.4:8000\n  skep cluster drain 7",
		RunE: a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
			found, err := c.Cluster(cmd.Context())
			if err != nil {
				return err
			}
			host, err := findHost(found, args[0])
			if err != nil {
				return err
			}
			if err := c.DrainHost(cmd.Context(), host.ID); err != nil {
				return err
			}
			isDrained := host.State == "drained"
			switch {
			case a.json() && isDrained:
				return a.printJSON(map[string]any{"id": host.ID, "address": host.Address, "state": host.State})
			case a.json():
				return a.printJSON(map[string]any{"id": host.ID, "address": host.Address, "state": "draining"})
			case isDrained:
				a.notef("host %d at %s is drained already", host.ID, inLine(host.Address))
			default:
				a.notef("host %d at %s gives its %d slots away; skep cluster list shows when it has none", host.ID, inLine(host.Address), host.Slots)
			}
			return nil
		}),
	}
}

// findHost finds a host by its id or address, with or without a slash at its end.
func findHost(found client.Cluster, name string) (client.ClusterHost, error) {
	for _, h := range found.Hosts {
		if strconv.FormatInt(h.ID, 10) == name || strings.TrimSuffix(h.Address, "/") == strings.TrimSuffix(name, "/") {
			return h, nil
		}
	}
	return client.ClusterHost{}, failf(exitNotFound, "no host of the cluster has the id or address %q; skep cluster list shows them", name)
}

const clusterFinalizeHelp = `Finalize raises the feature level to the highest one that all hosts have. A version of
skep that writes what older ones do not understand writes it only from then on, so that
old and new versions can run beside each other while hosts are replaced. Afterwards
older versions do not start any more, so finalize when you are sure not to go back.`

func (a *app) clusterFinalizeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "finalize", Short: "End an upgrade: raise the feature level", Long: clusterFinalizeHelp, Args: atMost(0),
		Example: "  skep cluster list && skep cluster finalize",
		RunE: a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
			level, err := c.FinalizeCluster(cmd.Context())
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(map[string]any{"feature_level": level})
			}
			a.notef("the feature level is %d", level)
			found, err := c.Cluster(cmd.Context())
			for _, h := range holdingBack(found, level) {
				a.notef("others could have a higher one, but host %d at %s cannot: replace its version, %s, and finalize again", h.ID, inLine(h.Address), inLine(h.Version))
			}
			return err
		}),
	}
}

// holdingBack lists the hosts for which a level is not higher: others have a higher one.
func holdingBack(found client.Cluster, level int) (list []client.ClusterHost) {
	for _, h := range found.Hosts {
		if h.Features <= level {
			list = append(list, h)
		}
	}
	if len(list) == len(found.Hosts) {
		return nil
	}
	return list
}
