package cli

import (
	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

const peerKeyHelp = `Key prints the public key of this host's letters. Another host that has it as
[peers.NAME] verify_key takes from this one only what is signed with it; this one
signs with [server] sign_letters = true, or when it asks the other for signatures.

The key is made when it is first asked for, and lies in letters.key in the data
directory, or on the server that [store] names, for all hosts that share it. It works
while a host runs as well.`

const peerKeyRotateHelp = `Rotate makes a new key and prints its public half. Peers that have the old one as
verify_key refuse letters until they have the new one. Hosts that share a server sign
with it at once; restart any other running host.`

func (a *app) peerKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Print the public key of this host's letters", Long: peerKeyHelp, Args: atMost(0),
		Example: "  skep peer key",
		RunE: a.withData(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
			key, err := d.SigningKey(cmd.Context())
			if err != nil {
				return err
			}
			return a.printVerifyKey(key)
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "rotate", Short: "Make a new key of this host's letters", Long: peerKeyRotateHelp, Args: atMost(0),
		Example: "  skep peer key rotate",
		RunE: a.withData(func(cmd *cobra.Command, d datadir.Data, _ []string) error {
			key, err := d.RotateSigningKey(cmd.Context())
			if err != nil {
				return err
			}
			a.notef("peers that have the old key as verify_key refuse letters until they have this one")
			return a.printVerifyKey(key)
		}),
	})
	return cmd
}

func (a *app) printVerifyKey(key string) error {
	if a.json() {
		return a.printJSON(map[string]string{"verify_key": key})
	}
	return a.printf("%s\n", key)
}
