package swarm

import (
	"fmt"
	"strings"

	"skep/abi"
	"skep/spec/mail"
)

// writeHelp answers the tool help. Its text is the result itself (class pure); no
// message is made.
func (t *Turn) writeHelp(e *stagedCall, args toolArgs) (string, *abi.Error) {
	var b strings.Builder
	if args.Summary == nil || *args.Summary {
		section(&b, "SUMMARY", helpSummary)
	}
	if args.Who {
		section(&b, "YOUR IDENTITY", fmt.Sprintf("Name: %s\nSwarm: %s\nLocal address: %s\nInterswarm address: %s\nYou may write to: %s",
			t.agent.Name, t.def.Name, t.agent.Name, mail.FormatAddr(t.agent.Name, t.def.Name),
			strings.Join(orNobody(t.agent.Targets), ", "))+t.describeKnownSwarms())
	}
	if len(args.Tool) > 0 {
		section(&b, "TOOL HELP", t.toolHelp(args.Tool))
	}
	if args.Full {
		section(&b, "FULL MAIL PROTOCOL SPECIFICATION", helpProtocol)
	}
	e.event, e.description = "help_called", "agent "+t.agent.Name+" called help"
	e.extra = map[string]any{"caller": t.agent.Name}
	return "help string generated\n\n" + b.String(), nil
}

func (t *Turn) toolHelp(names []string) string {
	var b strings.Builder
	for _, name := range names {
		for _, tool := range t.rt.mailToolList {
			if tool.Name == name {
				fmt.Fprintf(&b, "--- %s ---\n%s\nParameters: %s\n", tool.Name, tool.Description, tool.Parameters)
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func section(b *strings.Builder, title, text string) {
	fmt.Fprintf(b, "===== %s =====\n%s\n\n", title, text)
}

func orNobody(names []string) []string {
	if len(names) == 0 {
		return []string{"nobody"}
	}
	return names
}

const helpSummary = `You are an agent in a swarm. Agents work on a task by sending each other mail.
A turn begins when a message reaches you. In it you may call tools: the MAIL tools send mail, end your turn or finish the task; all other tools are actions and return a result at once.
Answer a request with send_response. When you need another agent, send_request and then await_message: your next turn begins with its answer. A supervisor ends the task with task_complete; the finish message goes to the user.
Nothing you send leaves before your turn has ended well.`

const helpProtocol = `MAIL 1.3 in short.
Messages: request and response go to one agent, broadcast and interrupt to several, broadcast_complete to "all" and ends a task.
Addresses: "name" is an agent of this swarm, "name@swarm" one of another swarm, "all" every agent of this swarm but the sender.
Order: 1 system, 2 users and admins, 3 interrupts of agents, 4 broadcasts of agents, 5 requests and responses of agents; within a tier the older message first.
Tasks: every message belongs to one task. A task runs until a supervisor calls task_complete; the user may write to it again later, and your history of it is kept.
System messages have subjects between two colons, such as ::agent_error:: or ::maximum_steps_reached::; no agent can send one.`
