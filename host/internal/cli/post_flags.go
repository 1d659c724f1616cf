package cli

import (
	"time"

	"github.com/spf13/cobra"

	"skep/host/client"
	"skep/spec/mail"
)

// postFlags are the flags of commands that post a message.
type postFlags struct {
	task       string
	entrypoint string
	subject    string
	kind       string
	timeout    time.Duration
	maxSteps   int
}

func (f *postFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.task, "task", "", "`ID` of the task to continue (default a new one)")
	fs.StringVar(&f.entrypoint, "entrypoint", "", "`AGENT` that gets the message, AGENT@SWARM for another swarm's (default the swarm's entrypoint)")
	fs.StringVar(&f.subject, "subject", "", "`TEXT` of the message's subject")
	fs.StringVar(&f.kind, "type", "request", "`TYPE` of the message: request, broadcast or interrupt")
	fs.DurationVar(&f.timeout, "timeout", 0, "end the task after this `TIME`, as in 90s or 10m (default the host's)")
	fs.IntVar(&f.maxSteps, "max-steps", 0, "end the task after `N` messages (default the host's)")
}

// post makes the message. The host checks the rest.
func (f *postFlags) post(cmd *cobra.Command, body string) (client.Post, error) {
	kind := mail.Type(f.kind)
	switch {
	case kind != mail.Request && kind != mail.Broadcast && kind != mail.Interrupt:
		return client.Post{}, usagef("--type is request, broadcast or interrupt, not %q", f.kind)
	case cmd.Flags().Changed("timeout") && f.timeout <= 0:
		return client.Post{}, usagef("--timeout must be positive, as in 90s or 10m")
	case cmd.Flags().Changed("max-steps") && f.maxSteps < 1:
		return client.Post{}, usagef("--max-steps must be at least 1")
	case mail.Reserved(f.subject):
		return client.Post{}, usagef("--subject must not begin with ::, which is reserved for the system")
	}
	return client.Post{
		Body: body, Subject: f.subject, Type: kind, Entrypoint: f.entrypoint,
		Task: f.task, Timeout: f.timeout, MaxSteps: f.maxSteps,
	}, nil
}
