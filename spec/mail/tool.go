package mail

import "slices"

// Names of the tools through which an agent sends mail (S-10). Their parameters
// are in spec/schema/tools.json.
const (
	ToolSendRequest          = "send_request"
	ToolSendResponse         = "send_response"
	ToolSendInterrupt        = "send_interrupt"
	ToolSendBroadcast        = "send_broadcast"
	ToolAcknowledgeBroadcast = "acknowledge_broadcast"
	ToolIgnoreBroadcast      = "ignore_broadcast"
	ToolAwaitMessage         = "await_message"
	ToolTaskComplete         = "task_complete"
	ToolHelp                 = "help"
)

// Tools returns the names of all MAIL tools, in the order in which agents are
// shown them.
func Tools() []string {
	return []string{
		ToolSendRequest, ToolSendResponse, ToolSendInterrupt, ToolSendBroadcast,
		ToolAcknowledgeBroadcast, ToolIgnoreBroadcast, ToolAwaitMessage, ToolTaskComplete, ToolHelp,
	}
}

// ReservedTool reports whether no action may bear this name: the names of [Tools],
// and the two interswarm tools that MAIL 1.3 hosts advertise.
func ReservedTool(name string) bool {
	return slices.Contains(Tools(), name) || name == "send_interswarm_broadcast" || name == "discover_swarms"
}
