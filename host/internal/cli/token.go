package cli

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/host/internal/definition/config"
)

func (a *app) tokenCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "token", Short: "Make, list and revoke tokens", GroupID: groupHost,
		Long: `A token is a key that a running host has made for somebody. It is shown once, when
it is made; the host keeps a digest of it.

An admin makes tokens of users and agents of its tenant, an operator those of
admins too, and of any tenant. On the host's own machine, beside its swarm.toml,
skep finds the operator's key by itself.`,
	}, a.withCallFlags(a.tokenCreateCommand()), a.withCallFlags(a.tokenListCommand()), a.withCallFlags(a.tokenRevokeCommand()))
}

const tokenCreateHelp = `Create makes a token and prints it on stdout, once. Whoever shows it to the host is
the principal --id with the role --role:

  user    posts tasks and reads its own
  admin   administers its tenant, and makes tokens of users and agents
  agent   another swarm's host, which may only hand mail over; --peer names the
          swarm when it is not that of --id

The token lives for --ttl, 90 days unless that says otherwise; 0 means until it is
revoked.`

func (a *app) tokenCreateCommand() *cobra.Command {
	var wish client.TokenWish
	var ttl string
	cmd := &cobra.Command{
		Use: "create", Short: "Make a token", Long: tokenCreateHelp, Args: atMost(0),
		Example: "  skep token create --role user --id alice > alice.token\n  skep token create --role admin --id ann --tenant acme --ttl 30d --label \"on call\"",
	}
	f := cmd.Flags()
	f.StringVar(&wish.Role, "role", "", "what it may do: user, admin or agent (`ROLE`)")
	f.StringVar(&wish.ID, "id", "", "whose it is (`ID`)")
	f.StringVar(&wish.Tenant, "tenant", "", "the `TENANT` (default that of the key in use)")
	f.StringVar(&wish.Peer, "peer", "", "the `SWARM` that an agent's token speaks for (default that of --id)")
	f.StringVar(&wish.Label, "label", "", "a note for the list, as where it is used (`TEXT`)")
	f.StringVar(&ttl, "ttl", "", "how long it lives, as 12h or 30d; 0 until it is revoked (`TIME`, default 90d)")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		for _, required := range [][2]string{{"role", wish.Role}, {"id", wish.ID}} {
			if required[1] == "" {
				return usagef("token create needs --%s", required[0])
			}
		}
		var err error
		if wish.TTL, err = readTTL(ttl); err != nil {
			return err
		}
		made, err := c.CreateToken(cmd.Context(), wish)
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(made)
		}
		a.notef("token %s of %s, %s; it is not shown again", inLine(made.ID), holder(made.Token), lifeText(made.Token))
		return a.printf("%s\n", made.Text)
	})
	return cmd
}

// readTTL reads how long a token is to live, in seconds; empty leaves it to the
// host.
func readTTL(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil || d < 0 || d%time.Second != 0 {
		return nil, usagef("--ttl takes a time such as 12h or 30d, not %q", text)
	}
	seconds := int64(d / time.Second)
	return &seconds, nil
}

// lifeText renders until when a token is valid, or since when it is not.
func lifeText(t client.Token) string {
	const form = "2006-01-02 15:04"
	switch {
	case t.Revoked != nil:
		return "revoked " + t.Revoked.Local().Format(form)
	case t.Expires == nil:
		return "until it is revoked"
	case t.State == "expired":
		return "expired " + t.Expires.Local().Format(form)
	}
	return "until " + t.Expires.Local().Format(form)
}

func (a *app) tokenListCommand() *cobra.Command {
	var tenant string
	cmd := &cobra.Command{
		Use: "list", Short: "List the tokens that were made", Args: atMost(0),
		Long:    "List shows the tokens of your tenant, to an operator those of all. Tokens that are\nnot valid any more are listed for another 30 days.",
		Example: "  skep token list\n  skep token list -o json | jq -r '.tokens[] | select(.state==\"valid\").id'",
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "for operators: those of one `TENANT`, which to others is their own")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		list, err := c.Tokens(cmd.Context(), tenant)
		if err != nil {
			return err
		}
		return a.printTokens(list)
	})
	return cmd
}

func (a *app) printTokens(list []client.Token) error {
	if a.json() {
		return a.printJSON(map[string]any{"tokens": append([]client.Token{}, list...)})
	}
	if len(list) == 0 {
		a.notef("there are no tokens")
		return nil
	}
	wide := len("WHOSE")
	for _, t := range list {
		wide = max(wide, utf8.RuneCountInString(holder(t)))
	}
	head := pad("ID", 36) + "  " + pad("WHOSE", wide) + "  " + pad("LIFE", 24) + "  LABEL"
	if err := a.printf("%s\n", a.dataStyle().dim(head)); err != nil {
		return err
	}
	for _, t := range list {
		if err := a.printf("%s  %s  %s  %s\n", pad(inLine(t.ID), 36), pad(holder(t), wide), pad(lifeText(t), 24), inLine(t.Label)); err != nil {
			return err
		}
	}
	return nil
}

// holder names the principal of a token, as the host's logs do.
func holder(t client.Token) string { return inLine(t.Tenant + "/" + t.Role + ":" + t.Principal) }

func (a *app) tokenRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "End a token for good", Args: exactArguments("the ID of a token, which `skep token list` shows"),
		Long:    "Revoke ends a token for good. It opens nothing from then on, and streams that it\nopened end within 15 seconds.",
		Example: "  skep token revoke 0b9f2f1c-52a4-4c0e-9d4e-6f0f3b1c8a11",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if strings.TrimSpace(args[0]) == "" {
			return usagef("token revoke takes the ID of a token, which `skep token list` shows")
		}
		t, err := c.RevokeToken(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(t)
		}
		since := ""
		if t.Revoked != nil { // of a token that was revoked before, when it was
			since = ", since " + localTime(*t.Revoked)
		}
		a.notef("token %s of %s is revoked%s", inLine(t.ID), holder(t), since)
		return nil
	})
	return cmd
}
