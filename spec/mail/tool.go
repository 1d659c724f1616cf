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
	// These two are for supervisors that may write to other swarms.
	ToolSendInterswarmBroadcast = "send_interswarm_broadcast"
	ToolDiscoverSwarms          = "discover_swarms"
)

// Tools returns the names of all MAIL tools, in the order in which agents are
// shown them.
func Tools() []string {
	return []string{
		ToolSendRequest, ToolSendResponse, ToolSendInterrupt, ToolSendBroadcast,
		ToolAcknowledgeBroadcast, ToolIgnoreBroadcast, ToolAwaitMessage, ToolTaskComplete, ToolHelp,
		ToolSendInterswarmBroadcast, ToolDiscoverSwarms,
	}
}

// ReservedTool reports whether no action may bear this name: it is one of [Tools].
func ReservedTool(name string) bool { return slices.Contains(Tools(), name) }
