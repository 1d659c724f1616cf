package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"skep/host/client"
)

// pingsAtOnce bounds the swarms that a host is asked to ping at once.
const pingsAtOnce = 8

func (a *app) peerPingCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ping NAME | --all", Short: "Ask a swarm whether it is well", Args: atMost(1),
		Long: `Ping has the running host ask a swarm now whether it is well, and what it is. It ends
with 1 when one does not answer as it should.`,
		Example: "  skep peer ping depot\n  skep peer ping --all -o json | jq -r '.peers[] | select(.active | not) | .swarm_name'",
	}
	cmd.Flags().BoolVar(&all, "all", false, "ping all swarms that the host knows")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		switch {
		case all && len(args) > 0:
			return usagef("%s takes a NAME or --all, not both", path(cmd))
		case !all && len(args) == 0:
			return usagef("%s needs the NAME of a swarm, which `skep peer list` shows, or --all", path(cmd))
		case all:
			list, err := c.Peers(cmd.Context())
			if err != nil {
				return err
			}
			for _, p := range list {
				args = append(args, p.Name)
			}
		}
		found, err := ping(cmd.Context(), c, args)
		if err != nil {
			return err
		}
		return a.showPings(found)
	})
	return cmd
}

// ping pings several swarms at once and returns the results in their order.
func ping(ctx context.Context, c *client.Client, names []string) ([]client.Pinged, error) {
	found := make([]client.Pinged, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(pingsAtOnce)
	for i, name := range names {
		g.Go(func() (err error) {
			found[i], err = c.PingPeer(ctx, name)
			return err
		})
	}
	return found, g.Wait()
}

// showPings ends with a failure when one is not active.
func (a *app) showPings(found []client.Pinged) error {
	if a.json() {
		if err := a.printPingsJSON(found); err != nil {
			return err
		}
	} else if err := a.printPings(found); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(p client.Pinged) bool { return !p.Active }) {
		return reported(exitFailed)
	}
	return nil
}

// printPingsJSON has null for what there is not, as the host's API has.
func (a *app) printPingsJSON(found []client.Pinged) error {
	type pinged struct {
		client.Pinged
		LastSeen *string `json:"last_seen"`
		Error    *string `json:"error"`
	}
	out := []pinged{}
	for _, p := range found {
		out = append(out, pinged{p, orNull(p.LastSeen), orNull(p.Error)})
	}
	return a.printJSON(map[string]any{"peers": out})
}

func (a *app) printPings(found []client.Pinged) error {
	if len(found) == 0 {
		a.notef("there are no peers")
	}
	for _, p := range found {
		state, detail := "active", "MAIL "+cmp.Or(inLine(p.Version), "of an unknown version")
		if !p.Active {
			state, detail = "inactive", inLine(p.Error)
		}
		if err := a.printf("%s  %s  %s  %s\n", pad(inLine(p.Name), 20), pad(state, 8), pad(latencyText(p.Latency), 8), detail); err != nil {
			return err
		}
	}
	return nil
}
