package swarm

import "encoding/json"

// Events about foreign messages that the log does not keep: they are shown to those who
// read at that time.
const (
	eventRetried  = "interswarm_message_retried"
	eventRepeated = "interswarm_message_repeated"
)

// ShowRetry shows the readers of a task that one of its messages will be sent again.
func (r *Runtime) ShowRetry(box OutboxKey, message, reason string) {
	if box.Peer == QuestionsPeer {
		return // the host's log has it
	}
	r.showDelivery(box.Task, eventRetried, "an interswarm message to swarm "+box.Peer+" will be sent again: "+reason, map[string]any{
		"message_id": message, "swarm": box.Peer, "error": reason,
	})
}

// showRepeat shows the readers of a task that a message of it came again through a gateway.
func (r *Runtime) showRepeat(key TaskKey, door, message string) {
	if isGateway(door) {
		r.showDelivery(key, eventRepeated, "a message came again", map[string]any{"message_id": message})
	}
}

// showDelivery gives an event to the readers of a task that runs. One that is not in memory
// has none.
func (r *Runtime) showDelivery(key TaskKey, name, text string, extra map[string]any) {
	r.mu.Lock()
	t := r.tasks[key]
	r.mu.Unlock()
	if t == nil {
		return
	}
	raw, _ := json.Marshal(extra) // texts always encode
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.State == StateRunning {
		t.volatile.pushEvent(Event{Name: name, Time: r.now(), Description: text, Extra: raw}, t.rec.Cursor)
	}
}
