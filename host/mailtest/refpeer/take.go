package refpeer

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// wrapper is what the runtime reads of one.
type wrapper struct {
	TargetSwarm  string   `json:"target_swarm"`
	Kind         string   `json:"msg_type"`
	Owner        string   `json:"task_owner"`
	Contributors []string `json:"task_contributors"`
	Payload      struct {
		TaskID      string    `json:"task_id"`
		RequestID   string    `json:"request_id"`
		BroadcastID string    `json:"broadcast_id"`
		Sender      address   `json:"sender"`
		Recipient   address   `json:"recipient"`
		Recipients  []address `json:"recipients"`
		Subject     string    `json:"subject"`
		Body        string    `json:"body"`
	} `json:"payload"`
}

type address struct {
	Address string `json:"address"`
}

// required are the members of a wrapper, in the order in which they are looked at,
// with their types. A schema lets two of them be missing; the reference does not.
var required = [][2]string{
	{"message_id", "str"}, {"source_swarm", "str"}, {"target_swarm", "str"}, {"timestamp", "str"}, {"payload", "dict"},
	{"msg_type", "str"}, {"auth_token", "str"}, {"metadata", "dict"}, {"task_owner", "str"}, {"task_contributors", "list"},
}

// take handles the body of a call. An error that is no refusal is one that the
// reference's handler does not expect.
func (p *Peer) take(caller string, body []byte, back bool) (receipt, error) {
	var in struct{ Message map[string]any }
	if err := json.Unmarshal(body, &in); err != nil {
		return receipt{}, err
	}
	if len(in.Message) == 0 {
		return receipt{}, refuse(http.StatusBadRequest, "parameter 'message' is required")
	}
	for _, f := range required {
		v, ok := in.Message[f[0]]
		if !ok {
			return receipt{}, refuse(http.StatusBadRequest, "parameter '%s' is required", f[0])
		}
		if got := typeName(v); got != f[1] {
			return receipt{}, refuse(http.StatusBadRequest, "parameter '%s' must be a %s, got %s", f[0], f[1], got)
		}
	}
	var w struct{ Message wrapper }
	if err := json.Unmarshal(body, &w); err != nil {
		return receipt{}, err
	}
	return p.enter(caller, w.Message, back)
}

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "str"
	case map[string]any:
		return "dict"
	case []any:
		return "list"
	case bool:
		return "bool"
	case float64:
		return "float"
	}
	return "NoneType"
}

// enter finds the instance and gives it the message. Whatever it does not like is
// a 500.
func (p *Peer) enter(caller string, w wrapper, back bool) (receipt, error) {
	t, way := Task{"swarm:" + caller, w.Payload.TaskID}, "forward"
	if back {
		var err error
		if t, err = p.find(w); err != nil {
			return receipt{}, err
		}
		way = "back"
	} else {
		p.bind(t)
	}
	mail, err := p.deliver(t, w)
	if err != nil {
		return receipt{}, refuse(http.StatusInternalServerError, "server failed to receive interswarm %s message: %v", way, err)
	}
	return receipt{map[string]any{
		"swarm": p.opt.Name, "task_id": t.ID, "status": "success", "local_runner": "swarm:" + caller + "@" + p.opt.Name,
	}, mail}, nil
}

// find is the instance that a back message is for: the first of this swarm among
// the contributors.
func (p *Peer) find(w wrapper) (Task, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := w.Payload.TaskID
	if !p.bound[id] {
		return Task{}, refuse(http.StatusBadRequest, "task is not running")
	}
	for _, c := range w.Contributors {
		if swarmOf(c) != p.opt.Name {
			continue
		}
		t := Task{c[:strings.Index(c, "@")], id}
		if role, _, _ := strings.Cut(c, ":"); !slices.Contains([]string{"admin", "user", "swarm"}, role) {
			return Task{}, refuse(http.StatusBadRequest, "invalid role: %s", role)
		}
		if !p.instances[t.Instance] {
			return Task{}, refuse(http.StatusNotFound, "no mail instance found for contributor: %s", c)
		}
		return t, nil
	}
	return Task{}, refuse(http.StatusNotFound, "no mail instance found for task with id %s", id)
}

// bind notes that the server has seen a task, and makes its instance. Nothing undoes
// it when the instance then refuses the message.
func (p *Peer) bind(t Task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound[t.ID], p.instances[t.Instance] = true, true
}
