package cli

import (
	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) peerCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "peer", Short: "Add, list and remove other swarms, and see to their mail", GroupID: groupHost,
		Long: `A peer is another swarm, on a host of its own, to whose agents those of this swarm
write as NAME@PEER. Peers stand in swarm.toml under [peers.NAME], or are added to a
running host.`,
	}, a.calling(a.peerAddCommand()), a.calling(a.peerListCommand()), a.calling(a.peerRemoveCommand()), a.peerDeadCommand())
}

const peerAddHelp = `Add makes a swarm known to the running host, which asks it what it is and takes it
also when it does not answer. Add it again to change it.

The token that the host shows there is read from a file, and kept in memory only:
set the variable that is printed before the next start. A token that stands in that
variable already needs no file. With --volatile the swarm is forgotten when the host
stops.`

func (a *app) peerAddCommand() *cobra.Command {
	var r client.Registration
	var file string
	var volatile bool
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Make a swarm known", Long: peerAddHelp,
		Args:    takes("the NAME of the swarm", "the URL of its host, as in https://depot.example"),
		Example: "  skep peer add depot https://depot.example --peer-token depot.token\n  skep peer add depot http://127.0.0.1:8100 --peer-token depot.token --volatile",
	}
	cmd.Flags().StringVar(&file, "peer-token", "", "the `FILE` with the token that the swarm's host has made for this one")
	cmd.Flags().BoolVar(&volatile, "volatile", false, "forget it when the host stops")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		r.Name, r.BaseURL, r.Lasting = args[0], args[1], !volatile
		if file != "" {
			var err error
			if r.Token, err = readToken(file); err != nil {
				return err
			}
		}
		ref, err := c.RegisterSwarm(cmd.Context(), r)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]string{"swarm_name": r.Name, "auth_token_ref": ref})
		}
		a.notef("swarm %s is known", printable(r.Name))
		if ref != "" {
			a.notef("after a restart the host looks for its token in %s", printable(ref))
		}
		return nil
	})
	return cmd
}

func (a *app) peerListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the swarms that the host knows", Args: atMost(0),
		Long:    "List shows all swarms that the running host knows: those of its file first.",
		Example: "  skep peer list\n  skep peer list -o json | jq -r '.peers[].swarm_name'",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		list, err := c.Peers(cmd.Context())
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]any{"peers": append([]client.Peer{}, list...)})
		}
		if len(list) == 0 {
			a.notef("there are no peers")
		}
		for _, p := range list {
			if err := a.printf("%s  %s  %s  %s\n", pad(printable(p.Name), 20), pad(printable(p.BaseURL), 36), pad(peerKind(p), 12), peerHealth(p)); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

// peerKind says where an entry comes from.
func peerKind(p client.Peer) string {
	switch {
	case p.Fixed:
		return "swarm.toml"
	case p.Volatile:
		return "volatile"
	}
	return "registered"
}

func peerHealth(p client.Peer) string {
	if p.LastSeen == "" {
		return "never seen"
	}
	return "last seen " + printable(p.LastSeen)
}

func (a *app) peerRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Forget a swarm that was added", Args: takes("the NAME of a swarm, which `skep peer list` shows"),
		Long:    "Remove forgets a swarm that was added. One of swarm.toml stays: remove its lines.",
		Example: "  skep peer remove depot",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if err := c.RemoveSwarm(cmd.Context(), args[0]); err != nil {
			return err
		}
		a.notef("swarm %s is not known any more", printable(args[0]))
		return nil
	})
	return cmd
}

func (a *app) peerDeadCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "dead", Short: "List and send again what no peer has taken",
		Long: "A dead letter is a message that a peer has refused, or did not answer for too long.\nThe agent that sent it was told.",
	}, a.calling(a.deadListCommand()), a.calling(a.deadResendCommand()))
}

func (a *app) deadListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, newest first", Args: atMost(0),
		Long:    "List shows the newest hundred dead letters of your tenant, with what became of them.",
		Example: "  skep peer dead list\n  skep peer dead list -o json | jq -r '.dead_letters[].id'",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		list, _, err := c.DeadLetters(cmd.Context(), "", 100)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]any{"dead_letters": append([]client.DeadLetter{}, list...)})
		}
		if len(list) == 0 {
			a.notef("there are no dead letters")
		}
		for _, d := range list {
			if err := a.printf("%s  %s  %s  %s\n", pad(inLine(d.ID), 36), pad(printable(d.Peer), 16), pad(printable(d.Task), 36), inLine(d.Reason)); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

func (a *app) deadResendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resend ID", Short: "Send a dead letter again", Args: takes("the ID of a dead letter, which `skep peer dead list` shows"),
		Long:    "Resend puts a dead letter back on its way, as if it was new. A peer that has taken\nit after all takes it once.",
		Example: "  skep peer dead resend 1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if err := c.ResendDeadLetter(cmd.Context(), args[0]); err != nil {
			return err
		}
		a.notef("letter %s is on its way again", printable(args[0]))
		return nil
	})
	return cmd
}
