package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/datadir"
)

const gatewayKeyHelp = `Key prints the public keys with which a gateway signs, a2a or uamp, which others
may pin: the one that signs, the one that will, and the one that did before. [gateways.a2a]
with sign_cards signs agent cards, [gateways.uamp] envelopes. A host makes the first
key; it lies in gateways/GATEWAY.key in the data directory.

It works while a host runs as well.`

const gatewayKeyRotateHelp = `Rotate makes a new key of a gateway. Hosts that start from now on publish it beside
the one that signs, and sign with it a day later; the old one stays published until
the next rotation. Restart a host that runs, so that it publishes the new key.`

// noGatewayKey is why a gateway may have no key.
const noGatewayKey = "there is no key of %s: a host with [gateways.%[1]s] makes one when it starts, for a2a only with sign_cards = true. The keys of a2a and uamp are shown by: skep gateway key NAME"

func (a *app) gatewayKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "key [GATEWAY]", Short: "Print the public keys of a gateway", Long: gatewayKeyHelp, Args: atMost(1),
		Example: "  skep gateway key\n  skep gateway key uamp -o json | jq '.keys[0].jwk' > hive.jwk",
		RunE: a.withDir(func(_ *cobra.Command, d datadir.Data, args []string) error {
			gateway, err := signingGateway(args)
			if err != nil {
				return err
			}
			keys, err := d.GatewayKeys(gateway)
			if err != nil {
				return err
			}
			return a.printGatewayKeys(gateway, keys)
		}),
	}
	cmd.AddCommand(&cobra.Command{
		Use: "rotate [GATEWAY]", Short: "Make a new key of a gateway", Long: gatewayKeyRotateHelp, Args: atMost(1),
		Example: "  skep gateway key rotate uamp",
		RunE: a.withDir(func(_ *cobra.Command, d datadir.Data, args []string) error {
			gateway, err := signingGateway(args)
			if err != nil {
				return err
			}
			keys, err := d.GatewayKeys(gateway)
			if err == nil && len(keys) == 0 {
				err = fmt.Errorf(noGatewayKey, gateway)
			}
			if err != nil {
				return err
			}
			if keys, err = d.RotateGatewayKey(gateway); err != nil {
				return err
			}
			a.notef("restart a host that runs, so that it publishes the new key")
			return a.printGatewayKeys(gateway, keys)
		}),
	})
	return cmd
}

// signingGateway is the gateway that arguments name, a2a without one.
func signingGateway(args []string) (string, error) {
	if len(args) == 0 {
		return datadir.SigningGateways()[0], nil
	}
	if !slices.Contains(datadir.SigningGateways(), args[0]) {
		return "", fmt.Errorf("%q has no keys: those that sign are %s", args[0], strings.Join(datadir.SigningGateways(), " and "))
	}
	return args[0], nil
}

// printGatewayKeys prints a line for each key.
func (a *app) printGatewayKeys(gateway string, keys []datadir.GatewayKey) error {
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
		a.notef(noGatewayKey, gateway)
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
func signingKey(keys []datadir.GatewayKey) string {
	for _, k := range keys {
		if k.State == "signs" {
			return k.ID
		}
	}
	return ""
}
