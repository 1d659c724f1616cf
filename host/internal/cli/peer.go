package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) peerCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "peer", Short: "Add, list, ping and remove other swarms, and see to their mail", GroupID: groupHost,
		Long: `A peer is another swarm, on a host of its own, to whose agents those of this swarm
write as NAME@PEER. Peers stand in swarm.toml under [peers.NAME], or are added to a
running host.`,
	}, a.withCallFlags(a.peerAddCommand()), a.withCallFlags(a.peerListCommand()), a.withCallFlags(a.peerPingCommand()), a.withCallFlags(a.peerRemoveCommand()), a.peerDeadCommand(), a.peerKeyCommand())
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
		Args:    exactArguments("the NAME of the swarm", "the URL of its host, as in https://depot.example"),
		Example: "  skep peer add depot https://depot.example --peer-token depot.token\n  skep peer add depot http://127.0.0.1:8100 --peer-token depot.token --volatile",
	}
	cmd.Flags().StringVar(&file, "peer-token", "", "the `FILE` with the token that the swarm's host has made for this one")
	cmd.Flags().BoolVar(&volatile, "volatile", false, "forget it when the host stops")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		r.Name, r.BaseURL, r.Lasting = args[0], args[1], !volatile
		var err error
		if r.Token, err = readPeerToken(file); err != nil {
			return err
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

// readPeerToken reads the token that --peer-token names, if it names one.
func readPeerToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	token, err := readToken(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", failf(exitNotFound, "there is no file %s, which --peer-token names", file)
	}
	return token, err
}

func (a *app) peerListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the swarms that the host knows", Args: atMost(0),
		Long: `List shows all swarms that the running host knows: those of its file first. Of each it
tells whether it answered when the host last asked it, how long it took, which version
of MAIL it speaks, and when it last answered.`,
		Example: "  skep peer list\n  skep peer list -o json | jq -r '.peers[].swarm_name'",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		list, err := c.Peers(cmd.Context())
		if err != nil {
			return err
		}
		if a.json() {
			return a.printPeersJSON(list)
		}
		if len(list) == 0 {
			a.notef("there are no peers")
			return nil
		}
		return a.printPeers(list)
	})
	return cmd
}

// printPeersJSON has null for what there is not, as the host's API has.
func (a *app) printPeersJSON(list []client.Peer) error {
	type peer struct {
		client.Peer
		LastSeen     *string `json:"last_seen"`
		Since        *string `json:"since"`
		Error        *string `json:"error"`
		LettersError *string `json:"letters_error"`
	}
	out := []peer{}
	for _, p := range list {
		out = append(out, peer{p, orNull(p.LastSeen), orNull(p.Since), orNull(p.Error), orNull(p.LettersError)})
	}
	return a.printJSON(map[string]any{"peers": out})
}

// orNull is a text for JSON that is null when it is empty.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func (a *app) printPeers(list []client.Peer) error {
	name, url := len("SWARM"), len("URL")
	for _, p := range list {
		name, url = max(name, utf8.RuneCountInString(inLine(p.Name))), max(url, utf8.RuneCountInString(inLine(p.BaseURL)))
	}
	row := func(cells ...string) string { return alignCells(cells, []int{name, url, 10, 9, 8, 4}) }
	head := row("SWARM", "URL", "FROM", "STATE", "LATENCY", "MAIL", "SEEN")
	if err := a.printf("%s\n", a.dataStyle().dim(head)); err != nil {
		return err
	}
	for _, p := range list {
		if err := a.printf("%s\n", row(inLine(p.Name), inLine(p.BaseURL), peerKind(p), peerHealth(p))); err != nil {
			return err
		}
	}
	return nil
}

// peerKind is where an entry comes from.
func peerKind(p client.Peer) string {
	switch {
	case p.Fixed:
		return "swarm.toml"
	case p.Discovered:
		return "discovered"
	case p.Volatile:
		return "volatile"
	}
	return "registered"
}

func peerHealth(p client.Peer) string {
	state := "inactive"
	switch {
	case p.Active:
		state = "active"
	case p.Since == "":
		state = "not asked"
	}
	seen := "never seen"
	if p.LastSeen != "" {
		seen = "last seen " + inLine(p.LastSeen)
	}
	if p.Error != "" {
		seen += ": " + inLine(p.Error)
	}
	if p.LettersError != "" {
		seen += "; it gets no mail: " + inLine(p.LettersError)
	}
	return pad(state, 9) + "  " + pad(latencyText(p.Latency), 8) + "  " + pad(cmp.Or(inLine(p.Version), "-"), 4) + "  " + seen
}

// latencyText shows a latency in seconds.
func latencyText(latency *float64) string {
	if latency == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", *latency*1000)
}

func (a *app) peerRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Forget a swarm that was added", Args: exactArguments("the NAME of a swarm, which `skep peer list` shows"),
		Long:    "Remove forgets a swarm that was added. One of swarm.toml stays: remove its lines.",
		Example: "  skep peer remove depot",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if err := c.RemoveSwarm(cmd.Context(), args[0]); err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]any{"swarm_name": args[0], "removed": true})
		}
		a.notef("swarm %s is not known any more", printable(args[0]))
		return nil
	})
	return cmd
}
