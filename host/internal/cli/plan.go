package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"skep/host/client"
)

const planHelp = `Plan compares the file of a running host with what the host runs: what "skep reload"
would change. The host reads its own file; nothing is changed.

A line begins with + for what is new, - for what is gone, ~ for what differs. One
that ends in "allows more" lets an agent or somebody else do what was not allowed
before; one that ends in "restart" cannot be taken over by a reload. Secrets are
not shown.

It takes an operator's key. With --exit-code the code is 2 when there are changes,
and 3 in any case when the file is at fault.`

func (a *app) planCommand() *cobra.Command {
	var code bool
	cmd := &cobra.Command{
		Use: "plan", Short: "Show what a reload would change", Long: planHelp, GroupID: groupHost, Args: atMost(0),
		Example: "  skep plan\n  skep plan -o json | jq '.changes[] | select(.widened)'",
	}
	cmd.Flags().BoolVar(&code, "exit-code", false, "end with code 2 when there are changes")
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, _ []string) error {
		changes, err := c.Plan(cmd.Context())
		if err != nil {
			return fileFault(err)
		}
		if err := a.printChanges(changes, "the host runs what is in its file"); err != nil {
			return err
		}
		if code && len(changes) > 0 {
			return reported(exitUsage)
		}
		return nil
	})
	return cmd
}

// fileFault maps a fault of the host's file to its exit code.
func fileFault(err error) error {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Status == http.StatusConflict {
		return &failure{code: exitConfig, err: err}
	}
	return err
}

func (a *app) printChanges(changes []client.Change, none string) error {
	if a.json() {
		if changes == nil {
			changes = []client.Change{}
		}
		return a.printJSON(map[string]any{"changes": changes})
	}
	if len(changes) == 0 {
		a.notef("%s", none)
		return nil
	}
	for _, c := range changes {
		if err := a.printf("%s\n", a.changeLine(c)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) changeLine(c client.Change) string {
	line := map[string]string{"added": "+", "removed": "-", "changed": "~"}[c.Change] + " " + pad(c.Kind, len("gateway")) + " " + inLine(c.Name)
	switch c.Change {
	case "added":
		line += "  " + brief(omitEmpty(c.After))
	case "changed":
		line += "  " + brief(c.Before) + " → " + brief(c.After)
	}
	if c.Widened {
		line += "  " + a.dataStyle().bold("allows more")
	}
	if c.Restart {
		line += "  restart"
	}
	return line
}

// omitEmpty drops the members of a new table that are absent, off or empty.
func omitEmpty(v json.RawMessage) json.RawMessage {
	var table map[string]json.RawMessage
	if json.Unmarshal(v, &table) != nil || table == nil {
		return v
	}
	for key, value := range table {
		switch string(value) {
		case "null", "false", "0", `""`, "[]", "{}", `"{}"`:
			delete(table, key)
		}
	}
	left, err := json.Marshal(table)
	if err != nil {
		return v
	}
	return left
}

// brief is a value in one line.
func brief(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return ""
	}
	return oneLine(b.String())
}
