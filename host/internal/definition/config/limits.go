package config

import (
	"time"

	"skep/host/internal/turn/wasm/binary"
)

// Limits is the [limits] table. Zero means unlimited, except in HTTP and Module.
type Limits struct {
	TaskMessages, Instances, PeerTasks, Queue, History, Turns, AgentRestAfter int

	TaskTimeout, ProcessIdle, AgentRest time.Duration

	ProcessCgroup string

	TaskTokens  int64
	TurnBuffers Size
	// WaitingTurns is how many turns keep their sandbox while they wait.
	WaitingTurns int
	TaskUSD      float64
	HTTP         HTTPLimits
	Module       binary.Caps
}

// Settings are the keys of the [limits] table.
func (l *Limits) Settings() []Setting {
	return allLimits(
		count(&l.TaskMessages, "task_messages", 100, 1, 1e9, "Turns of one task; a ceiling for `max_steps` of all but admins. At the limit the entrypoint gets `::maximum_steps_reached::` and one turn to finish.").unlimited(),
		span(&l.TaskTimeout, "task_timeout", time.Hour, time.Second, 10*365*day, "Time of one task, down time included; a ceiling for `timeout` of all but admins. The task ends with `::task_timeout::`.").unlimited(),
		count(&l.Instances, "instances", 10_000, 1, 1e9, "MAIL instances. Posts of new principals are refused with 429.").unlimited(),
		count(&l.PeerTasks, "peer_tasks", 1000, 1, 1e9, "Tasks that run for one other swarm's key. More that it would begin are refused with 429.").unlimited(),
		count(&l.Queue, "queue", 10_000, 1, 1e9, "Waiting messages of one instance. Posts to it are refused with 429.").unlimited(),
		count(&l.History, "history", 0, 1, 1e9, "Entries of one agent in one task.").unlimited().planned("history").noLimit(),
		count(&l.Turns, "turns", 64, 1, 1_000_000, "Turns that run at the same time; more turns wait. One instance has a quarter of them at most.").unlimited().restarts(),
		size(&l.TurnBuffers, "turn_buffers", 512*MiB, MiB, TiB, "What running turns hold in the host's memory beyond 1 MiB each: answers that they have not read, blobs before their commit. One tenant has half of it at most; beyond it such calls answer LIMIT.").restarts(),
		count(&l.WaitingTurns, "waiting_turns", 64, 1, 1_000_000, "Turns that keep the memory of their module while they wait for a model or a request. Beyond them, a turn that has waited for a second gives it back, and is repeated from its record when the answer is there. Processes keep theirs.").unlimited().restarts(),
		count(&l.TaskTokens, "task_tokens", 0, 1, 1e15, "Tokens of models in one task. Calls that do not fit are refused with LIMIT.").unlimited(),
		money(&l.TaskUSD, "task_usd", "Dollars for models in one task. Calls that do not fit are refused with LIMIT."),
		count(&l.AgentRestAfter, "agent_rest_after", 5, 1, 1000, "Turns of one agent and tenant in a row that use up `cpu` or `fuel`; after them the agent rests for `agent_rest`.").unlimited(),
		span(&l.AgentRest, "agent_rest", time.Minute, time.Second, day, "Time in which no turn of a resting agent is run: each fails at once and says until when. Then one turn tries it.").by(Less),
		span(&l.ProcessIdle, "process_idle", 10*time.Minute, time.Second, 365*day, "Time without a turn after which a process is ended; it is started again for the next turn.").unlimited().restarts(),
		text(&l.ProcessCgroup, "process_cgroup", "Control group (v2) below which each process gets one with limits, as `/sys/fs/cgroup/skep`. By default the host's own, where it may use it; `off` for none.").restarts(),
		section("http", l.HTTP.Settings(), "Bounds of one request of an agent."),
		section("module", moduleSettings(&l.Module), "Caps on the structure of a module, checked before anything is allocated for it."),
	)
}

// HTTPLimits bounds one request of an agent. None can be switched off.
type HTTPLimits struct {
	Timeout           time.Duration
	Request, Response Size
}

// Settings are the keys of [limits.http]. Their maxima are within the request and the
// answer of one op: 2 MiB and 16 MiB of JSON.
func (l *HTTPLimits) Settings() []Setting {
	return allLimits(
		span(&l.Timeout, "timeout", time.Minute, 100*time.Millisecond, time.Hour, "From the look-up of the name to the last byte, redirects included. Then DEADLINE."),
		size(&l.Request, "request", 2*MiB, 1, 2*MiB, "Body that is sent. Beyond it LIMIT."),
		size(&l.Response, "response", 8*MiB, 1, 16*MiB, "Body that is received, decoded. Beyond it LIMIT."),
	)
}

// moduleSettings cap the structure of a module before anything is allocated for it.
// None can be switched off: a few hundred bytes can declare billions.
func moduleSettings(l *binary.Caps) []Setting {
	def := binary.DefaultCaps()
	all := allLimits(
		size(&l.Size, "size", def.Size, 8, 1<<30, "The binary."),
		count(&l.Functions, "functions", def.Functions, 1, 1_000_000, "Functions that it defines."),
		size(&l.Body, "body", def.Body, 1, 8<<20, "The body of one function."),
		count(&l.Locals, "locals", def.Locals, 1, 50_000, "Locals of one function, its parameters included; also results of one type."),
		count(&l.Nesting, "nesting", def.Nesting, 1, 10_000, "Blocks that are open at once."),
		count(&l.BrTable, "br_table", def.BrTable, 1, 1_000_000, "Labels of one br_table."),
		count(&l.Types, "types", def.Types, 1, 1_000_000, "Types."),
		count(&l.Imports, "imports", def.Imports, 1, 100_000, "Imports."),
		count(&l.Exports, "exports", def.Exports, 1, 100_000, "Exports."),
		count(&l.Globals, "globals", def.Globals, 1, 1_000_000, "Globals, imported and defined."),
		count(&l.DataSegments, "data_segments", def.DataSegments, 1, 2_000_000, "Data segments."),
		count(&l.ElementSegments, "element_segments", def.ElementSegments, 1, 100_000, "Element segments."),
		count(&l.Tables, "tables", def.Tables, 1, 100, "Tables, imported and defined."),
		count(&l.TableElements, "table_elements", def.TableElements, 1, 10_000_000, "Elements of all tables together, now and after growth."),
		count(&l.CompileWork, "compile_work", def.CompileWork, 1, 1_000_000_000, "Estimated nanoseconds of compiling for each byte of code."),
	)
	for i := range all {
		all[i] = all[i].restarts()
	}
	return all
}
