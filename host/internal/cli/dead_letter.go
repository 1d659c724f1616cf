package cli

import (
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) peerDeadCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "dead", Short: "List and send again what no peer has taken",
		Long: "A dead letter is a message that a peer has refused, or did not answer for too long.\nThe agent that sent it was told.",
	}, a.withCallFlags(a.deadListCommand()), a.withCallFlags(a.deadResendCommand()))
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
		return a.printDead(list)
	})
	return cmd
}

func (a *app) printDead(list []client.DeadLetter) error {
	if len(list) == 0 {
		a.notef("there are no dead letters")
		return nil
	}
	peer, task := len("SWARM"), len("TASK")
	for _, d := range list {
		peer, task = max(peer, utf8.RuneCountInString(inLine(d.Peer))), max(task, utf8.RuneCountInString(inLine(d.Task)))
	}
	wide := []int{36, len(time.DateTime), peer, task}
	if err := a.printf("%s\n", a.dataStyle().dim(alignCells([]string{"ID", "DIED", "SWARM", "TASK", "WHY"}, wide))); err != nil {
		return err
	}
	for _, d := range list {
		cells := []string{inLine(d.ID), localTime(d.Died), inLine(d.Peer), inLine(d.Task), inLine(d.Reason)}
		if err := a.printf("%s\n", alignCells(cells, wide)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) deadResendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resend ID", Short: "Send a dead letter again", Args: exactArguments("the ID of a dead letter, which `skep peer dead list` shows"),
		Long:    "Resend puts a dead letter back on its way, as if it was new. A peer that has taken\nit after all takes it once.",
		Example: "  skep peer dead resend 1c9d8d2f-6f0e-4a39-9f5e-0d2c6a1c7b11",
	}
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		if err := c.ResendDeadLetter(cmd.Context(), args[0]); err != nil {
			return err
		}
		if a.json() {
			return a.printJSON(map[string]any{"id": args[0], "resent": true})
		}
		a.notef("letter %s is on its way again", printable(args[0]))
		return nil
	})
	return cmd
}
