package cli

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

const gatewayKeyHelp = `Key prints the public keys of the cards that [gateways.a2a] serves, which callers
may pin: the one that signs, the one that will, and the one that did before. A host
with sign_cards makes the first one; it lies in gateways/a2a.key in the data directory.

It works while a host runs as well.`

const gatewayKeyRotateHelp = `Rotate makes a new key for agent cards. Hosts that start from now on publish it
beside the one that signs, and sign with it a day later; the old one stays published
until the next rotation. Restart a host that runs, so that it publishes the new key.`

const noCardKey = "there is no key of agent cards: a host with [gateways.a2a] and sign_cards = true makes one when it starts"

func (a *app) gatewayKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Print the public keys of agent cards", Long: gatewayKeyHelp, Args: atMost(0),
		Example: "  skep gateway key\n  skep gateway key -o json | jq '.keys[0].jwk' > hive.jwk",
		RunE: a.withData(func(_ *cobra.Command, d datadir.Data, _ []string) error {
			keys, err := d.CardKeys()
			if err != nil {
				return err
			}
			return a.printCardKeys(keys)
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "rotate", Short: "Make a new key for agent cards", Long: gatewayKeyRotateHelp, Args: atMost(0),
		Example: "  skep gateway key rotate",
		RunE: a.withData(func(_ *cobra.Command, d datadir.Data, _ []string) error {
			keys, err := d.CardKeys()
			if err == nil && len(keys) == 0 {
				err = errors.New(noCardKey)
			}
			if err != nil {
				return err
			}
			if keys, err = d.RotateCardKey(); err != nil {
				return err
			}
			a.notef("restart a host that runs, so that it publishes the new key")
			return a.printCardKeys(keys)
		}),
	})
	return cmd
}

// printCardKeys prints a line for each key.
func (a *app) printCardKeys(keys []datadir.CardKey) error {
	if a.json() {
		type shown struct {
			State string          `json:"state"`
			ID    string          `json:"id"`
			From  *string         `json:"from"`
			JWK   json.RawMessage `json:"jwk"`
		}
		list := []shown{}
		for _, k := range keys {
			list = append(list, shown{k.State, k.ID, orNull(keyTime(k.From)), k.JWK})
		}
		return a.printJSON(map[string]any{"keys": list})
	}
	if len(keys) == 0 {
		a.notef(noCardKey)
	}
	for _, k := range keys {
		line := pad(k.State, len("signs")) + "  " + k.ID
		if k.State == "next" {
			line += "  signs from " + keyTime(k.From)
		}
		if err := a.printf("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// keyTime is a time in UTC, empty for none.
func keyTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// signingKey is the id of the key that signs.
func signingKey(keys []datadir.CardKey) string {
	for _, k := range keys {
		if k.State == "signs" {
			return k.ID
		}
	}
	return ""
}
