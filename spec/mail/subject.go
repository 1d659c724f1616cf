package mail

import "strings"

// Subjects of messages that the system makes. "In reply to" below means that the
// message is a response to the agent whose call or message was at fault.
const (
	SubjectTaskComplete           = "::task_complete::"             // completion: the task has its answer
	SubjectBreakpointToolCall     = "::breakpoint_tool_call::"      // completion: the task waits for the caller's tool results
	SubjectActionComplete         = "::action_complete::"           // broadcast to an agent: results of the turn's actions
	SubjectActionCompleteBcast    = "::action_complete_broadcast::" // broadcast to an agent: a breakpoint's results have come
	SubjectActionError            = "::action_error::"              // in reply to a call of an unknown, refused or failed action
	SubjectToolCallError          = "::tool_call_error::"           // in reply to a misused MAIL tool
	SubjectAgentError             = "::agent_error::"               // in reply to a message whose turn failed, or to an unknown agent
	SubjectInvalidRecipient       = "::invalid_recipient::"         // in reply to a send outside comm_targets
	SubjectImproperResponseToUser = "::improper_response_to_user::" // in reply to a message that an agent sent to the user
	SubjectHelp                   = "::help::"                      // broadcast to an agent: the text it asked for
	SubjectMaximumStepsReached    = "::maximum_steps_reached::"     // response to the entrypoint: finish now
	SubjectRuntimeError           = "::runtime_error::"             // completion: the task cannot go on
	SubjectTaskTimeout            = "::task_timeout::"              // completion: the task's time is up
	SubjectTaskError              = "::task_error::"                // completion: the task could not be submitted
	SubjectTaskCancelled          = "::task_cancelled::"            // completion: the caller cancelled the task
	SubjectRunLoopError           = "::run_loop_error::"            // completion: the host failed under the task
	SubjectRunLoopCancelled       = "::run_loop_cancelled::"        // completion: the host stopped under the task
	SubjectShutdownRequested      = "::shutdown_requested::"        // completion: the host goes down, the task resumes later
	SubjectInterswarmTaskComplete = "::interswarm_task_complete::"  // response to the entrypoint: a peer has completed the task
	SubjectRouterError            = "::router_error::"              // in reply to a message that a peer refused or never got
	SubjectTimer                  = "::timer::"                     // response to an agent: a timer it set has run out
	SubjectManualStep             = "::manual_step::"               // internal to manual stepping
)

// Reserved reports whether a subject belongs to the system, as all that begin
// with "::" do. Posts and sends that bear one are refused.
func Reserved(subject string) bool { return strings.HasPrefix(subject, "::") }
