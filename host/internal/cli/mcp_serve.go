package cli

import (
	"bufio"
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) mcpServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve [SWARM]", Short: "Serve a running host's agents to an MCP client on stdin and stdout",
		Args: cobra.MaximumNArgs(1),
		Long: `Serve is what a desktop client starts: it reads JSON-RPC messages from stdin, one on a
line, sends them to the MCP gateway of a running host, and writes the host's messages to
stdout. The client sees a tool for each agent that the host's [gateways.mcp] exposes to
the owner of the token: of SWARM, or of all swarms.`,
		Example: "  SKEP_URL=https://hive.example SKEP_TOKEN=… skep mcp serve",
	}
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		b := newBridge(c, a.env.Stdout, a.explainToClient)
		if len(args) == 1 {
			b.swarm = args[0]
		}
		return b.serve(cmd.Context(), func(ctx context.Context, each func([]byte)) error {
			return a.lines(ctx, maxMessage, each, func([]byte) error { return bufio.ErrTooLong })
		})
	})
	return a.withCallFlags(cmd)
}

// explainToClient is what an MCP client shows of an error: why, and what to change.
func (a *app) explainToClient(err error) string {
	f := explain(err)
	var refusal *client.Error
	if errors.As(err, &refusal) {
		switch refusal.Status {
		case http.StatusUnauthorized, http.StatusForbidden:
			f.hint = a.credentialHint(refusal)
		case http.StatusNotFound:
			f.hint = "the host has no [gateways.mcp], exposes no agent of the swarm, or SKEP_URL has a path"
		}
	}
	if f.hint == "" {
		return f.Error()
	}
	return f.Error() + "; " + f.hint
}

// maxMessage is the size of a message of an MCP client, in bytes.
const maxMessage = 8 << 20
