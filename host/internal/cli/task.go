package cli

import (
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/client"
)

func (a *app) taskCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "task", Short: "List, show, watch, export, resume and cancel tasks", GroupID: groupHost,
		Long: "Task commands look at the caller's tasks on a host that runs.",
	}, a.withCallFlags(a.taskListCommand()), a.withCallFlags(a.taskShowCommand()), a.withCallFlags(a.taskWatchCommand()), a.withCallFlags(a.taskEventsCommand()),
		a.withCallFlags(a.taskHistoryCommand()), a.withCallFlags(a.taskResumeCommand()), a.withCallFlags(a.taskCancelCommand()))
}

// connected makes a command that talks to a host.
func (a *app) connected(do func(cmd *cobra.Command, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return a.command(func(cmd *cobra.Command, args []string) error {
		c, err := a.connect()
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd, c, args)
	})
}

func (a *app) taskCancelCommand() *cobra.Command {
	var of client.TaskOf
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "End a task now", Args: exactArguments("the ID of a task"),
		Long: `Cancel stops a task's running turns and ends it. Who waits for its answer is told.
A later message to the task opens it again.

Operators end tasks of others with --owner and --tenant, admins those of their tenant with
--owner; the audit log has a line of it.

What its agents have done stays done. A workflow that is to undo its steps is cancelled by a message:
skep send --task ID '{"message_type": "workflow_cancel", "payload": {"workflow_id": WORKFLOW}}'`,
		Example: "  skep task cancel 3b0e4c1a-…\n  skep task cancel 3b0e4c1a-… --tenant acme --owner user:bob",
	}
	ownerFlags(cmd, &of)
	cmd.RunE = a.connected(func(cmd *cobra.Command, c *client.Client, args []string) error {
		of.ID = args[0]
		if err := c.CancelOf(cmd.Context(), of); err != nil {
			return a.explainTaskNotFound(err, of)
		}
		if a.json() {
			return a.printJSON(map[string]string{"task_id": args[0], "state": "cancelled"})
		}
		a.notef("task %s is cancelled", inLine(args[0]))
		return nil
	})
	return cmd
}

// explainTaskNotFound adds to a task that is not found how another owner's task is named. It is the same
// whether or not another owner has such a task.
func (a *app) explainTaskNotFound(err error, of client.TaskOf) error {
	var refusal *client.Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound || !strings.HasPrefix(refusal.Detail, "task '") {
		return err
	}
	switch {
	case of.Instance == "" && of.Tenant != "":
		return explain(err).help("--owner ROLE:ID names whose task of the tenant it is; `%s` lists them", a.sameSwarm("skep task list --tenant "+of.Tenant))
	case of.Instance == "":
		return explain(err).help("among others' tasks it is found with --owner ROLE:ID, in another tenant with --tenant as well; `%s` lists them for operators, --scope tenant for admins",
			a.sameSwarm("skep task list --scope host"))
	case strings.Contains(of.Instance, "@"):
		return explain(err).help("--owner takes ROLE:ID without the swarm, as in user:alice of user:alice@hive")
	case of.Tenant == "":
		return explain(err).help("in another tenant it is found with --tenant as well, by operators")
	}
	return err
}

// ownerFlags adds the flags that name another's task.
func ownerFlags(cmd *cobra.Command, of *client.TaskOf) {
	cmd.Flags().Var(ownerFlag{&of.Instance, &of.Tenant}, "owner", "whose task it is, as `ROLE:ID` or TENANT/ROLE:ID, for admins and operators")
	cmd.Flags().Var(ownerTenantFlag{&of.Tenant}, "tenant", "the `TENANT` of the owner, for operators")
}
