package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"skep/host/internal/gateway/acp/check"
)

func (a *app) acpStdioCommand() *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use: "stdio", Short: "Carry messages between stdin and stdout and a running host", Args: atMost(0),
		Long: `Stdio is what a program starts that speaks ACP on its standard streams: it reads
messages from stdin, one on a line, sends them to the ACP gateway of a running host, and
writes the host's messages to stdout. The senders are agents of the partner whose token
it has.

When the connection is lost, it is made again, and questions without an answer are sent
again: the host takes each once. At the end of stdin it waits for the answers that are
owed. A line that is larger than the host takes is answered by an ERROR and not sent.
While 64 questions wait, no further line is read. A question that has no answer in time is
answered by an ERROR, as one to another member of the partner, who need not answer.`,
		Example: "  SKEP_URL=https://hive.example SKEP_TOKEN=… skep acp stdio < messages.ndjson",
	}
	cmd.RunE = a.command(func(cmd *cobra.Command, _ []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		b := newACPBridge(c, a.env.Stdout, patience)
		return b.serve(cmd.Context(), func(ctx context.Context, each func([]byte)) error {
			return a.lines(ctx, check.MaxMessage, each, func(start []byte) error {
				b.refuseLine(start, check.MaxMessage)
				return nil
			})
		})
	})
	cmd.Flags().DurationVar(&patience, "timeout", 2*time.Hour, "how long a question waits for its answer (`TIME`)")
	return a.withCallFlags(cmd)
}
