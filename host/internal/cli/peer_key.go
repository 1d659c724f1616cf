package cli

import (
	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

const peerKeyHelp = `Key prints the public key of this host's letters. Another host that has it as
[peers.NAME] verify_key takes from this one only what is signed with it; this one
signs with [server] sign_letters = true, or when it asks the other for signatures.

The key is made when it is first asked for, and lies in letters.key in the data
directory. It works while a host runs as well.`

func (a *app) peerKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "key", Short: "Print the public key of this host's letters", Long: peerKeyHelp, Args: atMost(0),
		Example: "  skep peer key",
		RunE: a.withData(func(_ *cobra.Command, d datadir.Data, _ []string) error {
			key, err := d.SigningKey()
			if err != nil {
				return err
			}
			if a.json() {
				return a.printJSON(map[string]string{"verify_key": key})
			}
			return a.printf("%s\n", key)
		}),
	}
}
